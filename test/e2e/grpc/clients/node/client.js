/** The client in Node; see ../README.md. */

import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { credentials, loadPackageDefinition, Metadata } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const MOST_MESSAGE_BYTES = 8 << 20;

const [target, command, argument] = process.argv.slice(2);
const definition = loadSync(fileURLToPath(import.meta.resolve('../../echo/echo.proto')));
const { Echo } = loadPackageDefinition(definition).tokensidecar.e2e;
const client = new Echo(target, credentials.createInsecure(), {
  'grpc.max_receive_message_length': MOST_MESSAGE_BYTES,
});

let ownAuthorization;
const answer = { code: 0, message: '', replies: [], initial: {}, trailing: {} };

const commands = {
  once: (text) => unary('Once', text),
  fail: (code) => unary('Fail', code),

  own(authorization) {
    ownAuthorization = authorization;
    return unary('Once', 'hello');
  },

  async deadline(ms) {
    await unary('Once', 'connected');
    await unary('Hang', '', { deadline: Date.now() + Number(ms) });
  },

  async large(size) {
    const sent = '0123456789abcdef'.repeat(size / 16);
    await unary('Once', sent);
    if (answer.code === 0) answer.replies = [answer.replies[0] === sent ? size : 'the reply differs'];
  },

  async split(text) {
    await ended(client.Split(message(text), metadata()));
  },

  async join(text) {
    await new Promise((resolve) => {
      const call = client.Join(metadata(), settle(resolve));
      note(call);
      for (const word of text.split(' ')) call.write(message(word));
      call.end();
    });
  },

  /** Sends each line of the input, and prints the reply before it reads another. */
  async converse() {
    const call = client.Converse(metadata());
    call.on('data', ({ value }) => process.stdout.write(`${value}\n`));
    const lines = createInterface({ input: process.stdin });
    lines.on('line', (line) => call.write(message(line)));
    lines.on('close', () => call.end());
    await ended(call);
    process.stdin.destroy();
  },

  async cancel(text) {
    const call = client.Linger(message(text), metadata());
    call.once('data', () => call.cancel());
    await ended(call);
  },

  /** Opens streams and ends none before a reply has come on each. */
  async many(count) {
    const calls = Array.from({ length: Number(count) }, () => client.Converse(metadata()));
    const ends = calls.map(ended);
    const failed = Promise.race(ends);
    const replies = calls.map((call) => new Promise((resolve) => call.once('data', resolve)));
    for (const call of calls) call.write(message('one of many'));
    await Promise.race([Promise.all(replies), failed]);
    for (const call of calls) call.end();
    await Promise.all(ends);
    if (answer.code === 0) answer.replies = [count];
  },
};

function unary(method, text, options = {}) {
  return new Promise((resolve) => {
    note(client[method](message(text), metadata(), options, settle(resolve)));
  });
}

function settle(resolve) {
  return (error, reply) => {
    if (error === null) answer.replies.push(String(reply.value));
    // The status comes after it.
    setImmediate(resolve);
  };
}

/** Resolves at the end of a call whose replies are a stream. */
function ended(call) {
  note(call);
  call.on('data', ({ value }) => answer.replies.push(String(value)));
  // The status says it too.
  call.on('error', () => undefined);
  return new Promise((resolve) => call.once('status', resolve));
}

function note(call) {
  call.on('metadata', (received) => {
    answer.initial = readable(received);
  });
  call.on('status', ({ code, details, metadata: trailing }) => {
    if (answer.code !== 0) return;
    Object.assign(answer, { code, message: details, trailing: readable(trailing) });
  });
}

function message(text) {
  return { value: Buffer.from(text) };
}

function metadata() {
  const sent = new Metadata();
  sent.set('echo-text', 'some text');
  sent.set('echo-bin', Buffer.from([0x00, 0xff, 0x80, 0x2c, 0x0a]));
  if (ownAuthorization !== undefined) sent.set('authorization', ownAuthorization);
  return sent;
}

/** Has the values of binary metadata in hexadecimal. */
function readable(received) {
  return Object.fromEntries(
    Object.entries(received.getMap()).map(([name, value]) => [
      name,
      Buffer.isBuffer(value) ? value.toString('hex') : value,
    ]),
  );
}

await commands[command](argument);
client.close();
process.stdout.write(`${JSON.stringify(answer)}\n`);
