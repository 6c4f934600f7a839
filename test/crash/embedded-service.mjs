// One service process in the tests of the embedded server: starts it, says so in a line of JSON, ends it on a signal.
import { startEmbeddedServer } from '../../dist/libs/database/src/embedded-server.js';

const [dataDir, settings = '{}'] = process.argv.slice(2);
const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);

try {
  const server = await startEmbeddedServer({
    dataDir,
    settings: JSON.parse(settings),
    log: (line) => say({ log: line }),
    onFailure: (error) => say({ failure: error.message }),
  });
  process.once('SIGTERM', async () => {
    await Promise.all([server.stop(), server.stop()]);
    say({ stopped: true });
  });
  process.once('SIGINT', () => say({ interrupted: true }));
  say({ url: server.url, port: server.port });
} catch (error) {
  say({ refused: error.message, name: error.name, isOneLine: !error.message.includes('\n') });
  process.exitCode = 1;
}
