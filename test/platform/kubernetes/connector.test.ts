import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { connectorFor } from '../../../src/platform/kubernetes/configuration.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { freePort } from '../../support/free-port.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startSilentListener } from '../../support/silent-listener.ts';
import { selfSigned } from '../../wire/certificate.ts';

const HOST = '127.0.0.1';
const { cert, key } = selfSigned(HOST);

/** What a connector makes of a port. */
function connecting(port: number, { clock = systemClock, protocol = 'https:' } = {}) {
  const made = Promise.withResolvers<string>();
  connectorFor({ ca: cert }, clock)({ hostname: HOST, protocol, port: String(port) }, (error, socket) => {
    onTestFinished(() => void socket?.destroy());
    const { code } = (error ?? {}) as { code?: string };
    made.resolve(code ?? `${socket?.alpnProtocol}`);
  });
  return made.promise;
}

it.each([
  ['HTTP/2', ['h2', 'http/1.1'], 'h2'],
  ['HTTP/1.1 alone', ['http/1.1'], 'http/1.1'],
])('a server of %s is reached over TLS by what it chooses', async (_, ALPNProtocols, chosen) => {
  const server = createServer({ cert, key, ALPNProtocols }, (socket) => socket.on('error', () => {}));
  server.listen(0, HOST);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const clock = new ManualClock();
  expect(await connecting((server.address() as AddressInfo).port, { clock })).toBe(chosen);
  expect(clock.pendingTimers).toBe(0);
});

it('a port that is closed fails with the system’s code', async () => {
  const clock = new ManualClock();
  expect(await connecting(await freePort(), { clock })).toBe('ECONNREFUSED');
  expect(clock.pendingTimers).toBe(0);
});

it.each(['https:', 'http:'])('a server that does not answer has ten seconds (%s)', async (protocol) => {
  const clock = new ManualClock();
  const { port } = await startSilentListener(HOST);
  const made = connecting(port, { clock, protocol });
  await clock.advance(10_000);
  expect(await made).toBe('ETIMEDOUT');
});
