/**
 * Other pods at an admin listener, in a process of their own: `admin-crowd.ts PORT ADDRESSES EACH TEXTS`. Each address has
 * so many connections, which say the texts of a JSON list by turns. Those that were answered ask again, and those that
 * have ended come again, 3000 in a second at most. Prints `here` when all have come once, and ends with its standard input.
 */

import { connect } from 'node:net';

const TICK_MS = 10;
const IN_A_TICK = 30;

const [port, addresses, each, texts] = process.argv.slice(2).map((word) => JSON.parse(word));

const members = addresses * each;
let came = 0;
/** What those do next who have nothing to wait for. */
const next: (() => void)[] = [];

function come(localAddress: string, text: string): void {
  const socket = connect({ host: '127.0.0.1', port, localAddress }, () => socket.write(text));
  socket.once('connect', () => {
    if (++came === members) process.stdout.write('here\n');
  });
  socket.on('error', () => undefined);
  let asks = false;
  socket.on('data', () => {
    if (asks) return;
    asks = true;
    next.push(() => {
      asks = false;
      if (!socket.destroyed) socket.write(text);
    });
  });
  socket.once('close', () => next.push(() => come(localAddress, text)));
}

for (let n = 0; n < members; n++) {
  come(`127.0.1.${1 + (n % addresses)}`, texts[(n + Math.floor(n / addresses)) % texts.length]);
}
setInterval(() => {
  for (const act of next.splice(0, IN_A_TICK)) act();
}, TICK_MS);
process.stdin.resume().once('end', () => process.exit());
