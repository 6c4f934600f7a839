// The rules of the house about who may know whom. Each is checked by `npm run check`.

const ROOMS = '^libs/(idempotency|decisions|effects)/';
const LIBRARY = '^libs/([^/]+)/';

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'rooms-stay-apart',
      comment: 'A key, a decision and an effect are three views of one event; they meet in the key, not in code.',
      severity: 'error',
      from: { path: ROOMS },
      to: { path: ROOMS, pathNot: '^libs/$1/' },
    },
    {
      name: 'only-the-ledger-joins-the-rooms',
      comment:
        'The one transaction over the rooms is opened in libs/ledger; another library that knew them could open a second.',
      severity: 'error',
      from: { path: LIBRARY, pathNot: '^libs/(ledger|idempotency|decisions|effects)/' },
      to: { path: ROOMS },
    },
    {
      name: 'rooms-below-the-ledger',
      comment: 'The rooms take part in a transaction that they are given; they do not know who gives it.',
      severity: 'error',
      from: { path: ROOMS },
      to: { path: '^libs/ledger/' },
    },
    {
      name: 'front-door-only',
      comment: 'A library is what its index.ts exports. Everything else in it may change without anybody noticing.',
      severity: 'error',
      from: { path: '^(apps|libs|examples|test|bench)/', pathNot: LIBRARY },
      // The client is a package of its own, with tests beside the others' that look into it.
      to: { path: '^libs/[^/]+/', pathNot: ['^libs/[^/]+/src/index\\.ts$', '^libs/client/'] },
    },
    {
      name: 'front-door-only-between-libraries',
      comment: 'As above, from one library into another.',
      severity: 'error',
      from: { path: LIBRARY },
      to: { path: '^libs/[^/]+/', pathNot: ['^libs/$1/', '^libs/[^/]+/src/index\\.ts$'] },
    },
    {
      name: 'http-in-apps-only',
      comment: 'What decides must not depend on how it was asked.',
      severity: 'error',
      from: { path: '^(libs|examples)/' },
      to: { path: '(^|node_modules/)(fastify|@fastify|@nestjs/(platform-fastify|swagger))(/|$)' },
    },
    {
      name: 'libraries-below-apps',
      comment: 'Applications are put together from libraries, never the other way round.',
      severity: 'error',
      from: { path: '^(libs|examples)/' },
      to: { path: '^(apps|test|bench)/' },
    },
    {
      name: 'key-and-problem-are-pure',
      comment:
        'Clients in other languages repeat what libs/key computes, so it must not lean on a framework, a database or a clock.',
      severity: 'error',
      from: { path: '^libs/(key|problem)/', pathNot: '\\.test\\.ts$' },
      to: { path: '(^|node_modules/)(@nestjs|typeorm|pg|fastify|rxjs|reflect-metadata)(/|$)' },
    },
    {
      name: 'log-is-pure-where-others-repeat-it',
      comment:
        'Auditors check a log with programs of their own, so what a proof is must not lean on a framework, a database or a clock.',
      severity: 'error',
      from: { path: '^libs/log/src/(pure|verifier)/' },
      to: { path: ['(^|node_modules/)(@nestjs|typeorm|pg|fastify|rxjs|reflect-metadata)(/|$)', '^libs/(?!key/|log/)'] },
    },
    {
      name: 'pure-log-below-the-rest',
      comment: 'Neither the verifier nor the sealing is needed to say what a tree, a note or a leaf is.',
      severity: 'error',
      from: { path: '^libs/log/src/pure/' },
      to: { path: '^libs/log/src/', pathNot: '^libs/log/src/pure/' },
    },
    {
      name: 'verifier-stands-alone',
      comment: 'It is run by who does not trust the service, so it must not use what seals.',
      severity: 'error',
      from: { path: '^libs/log/src/verifier/' },
      to: { path: '^libs/log/src/', pathNot: '^libs/log/src/(pure|verifier)/' },
    },
    {
      name: 'key-is-lowest',
      comment: 'What a key is depends on nothing else here.',
      severity: 'error',
      from: { path: '^libs/key/' },
      to: { path: '^libs/', pathNot: '^libs/key/' },
    },
    {
      name: 'examples-from-apps-only',
      comment: 'The handlers of the examples are plugged in by an application; the ledger works without them.',
      severity: 'error',
      from: { pathNot: '^(apps|examples|test|bench)/' },
      to: { path: '^examples/' },
    },
    {
      name: 'no-cycles',
      comment:
        'Two modules that need each other are one module, and in ECMAScript modules one of them sees the other half-made.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'nothing-unresolved',
      comment: 'An import that leads nowhere would also escape every other rule.',
      severity: 'error',
      from: {},
      // Programs of the client's tests import the packed package, which the test puts in place.
      to: { couldNotResolve: true, pathNot: '^@decision-ledger/client$' },
    },
    {
      name: 'no-undeclared-packages',
      comment: 'A package that is there only because another one needs it may be gone after the next update.',
      severity: 'error',
      // The client has a manifest of its own; its build uses the compiler of the project around it.
      from: { pathNot: '^libs/client/build\\.mjs$' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-development-packages-at-run-time',
      comment: 'They are not installed where the service runs.',
      severity: 'error',
      // The client's build runs where the package is made.
      from: { path: '^(apps|libs|examples)/', pathNot: ['\\.test\\.ts$', '^libs/client/build\\.mjs$'] },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|coverage)' },
    // Imports of types count too: a room that only borrows another's type still depends on it.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['source', 'import', 'node', 'types', 'default'],
      extensions: ['.ts', '.mts', '.js', '.mjs', '.cjs', '.json', '.d.ts'],
    },
  },
};
