/** The server in Node; see ../README.md. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { loadPackageDefinition, Metadata, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const MOST_MESSAGE_BYTES = 8 << 20;
const FAILURE = 'as asked for: 100 % ☂';

const text = { type: 'string', default: '' };
// As Go has its flags, with one dash.
const given = process.argv.slice(2).map((word) => word.replace(/^-(?=[a-z])/, '--'));
const { values: flags } = parseArgs({
  args: given,
  options: { authorization: text, revoked: text, cert: text, key: text },
});

const definition = loadSync(fileURLToPath(import.meta.resolve('../../echo/echo.proto')));
const { Echo } = loadPackageDefinition(definition).tokensidecar.e2e;
let revokedWasUsed = false;

/** Prints a call at its end, which comes once. */
function begin(method, call) {
  let ended = false;
  function end(code) {
    if (ended) return;
    ended = true;
    const line = { method, authorization: call.metadata.get('authorization'), status: nameOf(code) };
    process.stdout.write(`${JSON.stringify(line)}\n`);
  }
  call.on('cancelled', () => end(status.CANCELLED));
  return end;
}

/** As Go writes them. */
function nameOf(code) {
  if (code === status.OK) return 'OK';
  if (code === status.CANCELLED) return 'Canceled';
  return status[code].toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase());
}

function isAdmitted(call) {
  const authorization = call.metadata.get('authorization');
  if (authorization.length !== 1 || !authorization[0].startsWith(flags.authorization)) return false;
  const isRevoked = authorization[0] === flags.revoked;
  const refused = isRevoked && revokedWasUsed;
  revokedWasUsed ||= isRevoked;
  return !refused;
}

/** Answers the metadata of a call that has the token; gives it, and undefined for one that has not. */
function admit(call) {
  if (!isAdmitted(call)) return undefined;
  const echoed = new Metadata();
  for (const name of ['echo-text', 'echo-bin']) {
    for (const value of call.metadata.get(name)) echoed.add(name, value);
  }
  call.sendMetadata(echoed);
  return echoed;
}

const REFUSAL = { code: status.UNAUTHENTICATED, details: 'no authorization, or a wrong one' };

/** @param answer gives the reply; throws what the call is to fail with. */
function one(method, answer) {
  return async (call, settle) => {
    const end = begin(method, call);
    const echoed = admit(call);
    if (echoed === undefined) {
      settle(REFUSAL);
      end(REFUSAL.code);
      return;
    }
    try {
      settle(null, await answer(call), echoed);
      end(status.OK);
    } catch (error) {
      settle(error);
      end(error.code);
    }
  };
}

/** @param talk resolves when all has been said. */
function stream(method, talk) {
  return async (call) => {
    const end = begin(method, call);
    const echoed = admit(call);
    if (echoed === undefined) {
      call.emit('error', REFUSAL);
      end(REFUSAL.code);
      return;
    }
    await talk(call);
    call.end(echoed);
    end(status.OK);
  };
}

/** Those that come; the call is still to be answered when they have. */
function messages(call) {
  return call.iterator({ destroyOnReturn: false });
}

async function words(call) {
  const all = [];
  for await (const { value } of messages(call)) all.push(String(value));
  return all;
}

const server = new Server({ 'grpc.max_receive_message_length': MOST_MESSAGE_BYTES });
server.addService(Echo.service, {
  Once: one('Once', ({ request }) => request),
  Hang: one('Hang', () => new Promise(() => {})),
  Fail: one('Fail', ({ request }) => {
    throw { code: Number(String(request.value)), details: FAILURE };
  }),
  Join: one('Join', async (call) => ({ value: Buffer.from((await words(call)).join(' ')) })),
  Split: stream('Split', (call) => {
    for (const word of String(call.request.value).split(' ')) call.write({ value: Buffer.from(word) });
  }),
  Linger: stream('Linger', (call) => {
    call.write(call.request);
    return new Promise(() => {});
  }),
  Converse: stream('Converse', async (call) => {
    for await (const request of messages(call)) call.write(request);
  }),
});

const credentials =
  flags.cert === ''
    ? ServerCredentials.createInsecure()
    : ServerCredentials.createSsl(null, [
        { private_key: readFileSync(flags.key), cert_chain: readFileSync(flags.cert) },
      ]);
server.bindAsync('127.0.0.1:0', credentials, (error, port) => {
  if (error !== null) throw error;
  process.stdout.write(`${JSON.stringify({ port })}\n`);
});
// The tests end it by closing its input, or by ending themselves.
process.stdin.resume().on('end', () => {
  server.forceShutdown();
  process.exit(0);
});
