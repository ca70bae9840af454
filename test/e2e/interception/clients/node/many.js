/** Many connections to one host. `flood`: each begins a handshake and stops. `churn`: each asks once, in turns of so many at a time. */

import net from 'node:net';
import tls from 'node:tls';

const [what, host, total, atOnce] = [
  process.argv[2],
  process.argv[3],
  Number(process.argv[4]),
  Number(process.argv[5]),
];

/** The head of a record that promises more. */
const BEGUN = Buffer.from([22, 3, 1, 2, 0]);

function flood() {
  let ended = 0;
  const tell = () => {
    // Those that are left are held until their time is up.
    if (ended + atOnce < total) return;
    process.stdout.write(JSON.stringify({ ended }));
    process.exit();
  };
  for (let count = 0; count < total; count++) {
    const socket = net.connect(443, host, () => socket.write(BEGUN));
    socket.on('error', () => {});
    socket.on('close', () => {
      ended += 1;
      tell();
    });
    socket.resume();
  }
}

function ask(path) {
  return new Promise((resolve) => {
    let said = '';
    const socket = tls.connect({ host, port: 443, servername: host }, () => {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    });
    socket.on('data', (chunk) => {
      said += chunk.toString('latin1');
    });
    socket.on('error', (error) => resolve(error.code));
    socket.on('close', () => resolve(said.slice(9, 12)));
  });
}

async function churn() {
  const answers = {};
  let next = 0;
  const work = async () => {
    while (next < total) {
      const answer = await ask(`/churn/${next++}`);
      answers[answer] = (answers[answer] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  process.stdout.write(JSON.stringify(answers));
}

if (what === 'flood') flood();
else await churn();
