// Imported before anything else, so that an old Node.js says this and not where its parser gave up.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`decision-ledger: Node.js 20.19 or newer is needed; this is ${process.versions.node}\n`);
  process.exit(1);
}
