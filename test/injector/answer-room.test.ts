/** What is kept of the room for reviews once they are answered: the answer's part, for as long as nobody reads it. */

import { once } from 'node:events';
import { type ConnectionOptions, connect } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import { servingCertificateOf } from '../../src/injector/certificate/stored-certificates.ts';
import { createReviewBudget } from '../../src/injector/review-budget.ts';
import { startWebhookListener } from '../../src/injector/webhook-listener.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';

const MIB = 2 ** 20;
const never = new AbortController().signal;
const nothing = (): void => undefined;

it('what an answer does not need is given back, to whoever waits', async () => {
  const budget = createReviewBudget();
  const reserve = (address: string, mib: number) => budget.reserve(address, mib * MIB, never, nothing);
  const held = await Promise.all(['a', 'a', 'b', 'b'].map((address) => reserve(address, 4)));
  for (const { arrived } of held) arrived();
  const waiting = ['c', 'd'].map((address) => reserve(address, 4));
  for (const { answered } of held) answered(2 * MIB);
  // Eight of answers and eight of reviews: all that there is.
  const [third] = await Promise.all(waiting);
  let room = false;
  const last = reserve('e', 4).then(() => {
    room = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(room).toBe(false);
  third?.release();
  await last;
});

it('an answer that is larger than its review, or comes after its connection has ended, takes nothing more', async () => {
  const budget = createReviewBudget();
  const [large, gone] = await Promise.all(
    ['a', 'b'].map((address) => budget.reserve(address, 4 * MIB, never, nothing)),
  );
  large?.answered(12 * MIB);
  gone?.release();
  gone?.answered(4 * MIB);
  await Promise.all(['c', 'd', 'e'].map((address) => budget.reserve(address, 4 * MIB, never, nothing)));
});

it('callers who read no answer leave room for others', async () => {
  const clock = new ManualClock();
  const issued = await issueCertificate({ hosts: ['hook'], nowMs: Date.now(), lifetimeMs: 60_000 });
  const { address, drain } = await startWebhookListener({
    listen: { host: '127.0.0.1', port: 0 },
    certificates: {
      current: () => servingCertificateOf(issued),
      onChange: () => nothing,
      close: async () => undefined,
    },
    webhooks: {
      '/large': async () => ({ status: 200, body: 'x'.repeat(3.75 * MIB) }),
      '/small': async () => ({ status: 200, body: 'small' }),
    },
    metrics: { connectionDropped: nothing },
    clock,
    log: captureLog().log,
  });
  onTestFinished(async () => {
    const drained = drain(0, 0);
    await clock.advance(0);
    await clock.advance(0);
    await drained;
  });
  async function ask(path: string, bytes: number, localAddress: string) {
    // TLS passes the local address on to TCP, though its type does not say so.
    const options: ConnectionOptions & { localAddress: string } = {
      host: '127.0.0.1',
      port: address.port,
      ca: issued.ca,
      servername: 'hook',
      localAddress,
    };
    const socket = connect(options);
    onTestFinished(() => void socket.destroy());
    await once(socket, 'secureConnect');
    const head = [`POST ${path} HTTP/1.1`, 'host: hook', 'content-type: application/json'];
    socket.write(`${head.join('\r\n')}\r\ncontent-length: ${bytes}\r\n\r\n`);
    socket.write('x'.repeat(bytes));
    const [first] = (await once(socket, 'data')) as [Buffer];
    socket.pause();
    return first.toString('latin1', 9, 12);
  }
  const callers = ['127.0.3.1', '127.0.3.1', '127.0.3.2', '127.0.3.2'];
  await Promise.all(callers.map((caller) => ask('/large', 4 * MIB, caller)));
  expect(await ask('/small', MIB, '127.0.3.3')).toBe('200');
});
