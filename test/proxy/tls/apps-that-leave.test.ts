import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { selfSigned } from '../../wire/certificate.ts';
import type { RawClient } from '../../wire/raw-client.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';
import { helloOf } from './hello.ts';
import { HOST, type Interception, intercepting, startTlsUpstream, type Upstream } from './intercepting.ts';

const failures = ({ sidecar }: Interception) =>
  sidecar.metric('proxy_errors_total', { error: 'client_tls_error' });

/** Accepts connections, and says nothing on any. */
async function startSilent() {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}).resume());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  const caFile = await temporaryFile('upstream.crt', selfSigned(HOST).cert);
  const upstream: Upstream = { port, caFile, arrived: [], secured: () => 0 };
  return { upstream, sockets };
}

describe('during a TLS handshake, an app that leaves', () => {
  it('by a reset amid its ClientHello is counted once', async () => {
    const interception = await intercepting(await startTlsUpstream());
    const client = await interception.connected();
    const hello = await helloOf({ servername: HOST });
    client.send(hello.subarray(0, 60));
    client.reset();
    await until(async () => (await failures(interception)) > 0);
    await interception.sidecar.idle();
    expect(await failures(interception)).toBe(1);
  });

  it.each([
    ['by a reset', (client: RawClient) => client.reset()],
    ['by an end', (client: RawClient) => client.end()],
    ['by saying too much', (client: RawClient) => client.send(Buffer.alloc(64 * 1024))],
  ])('%s while the upstream’s protocol is being found out is counted at once', async (_, leave) => {
    const { upstream, sockets } = await startSilent();
    const interception = await intercepting(upstream, { clock: new ManualClock() });
    const client = await interception.connected();
    client.send(await helloOf({ servername: HOST, ALPNProtocols: ['h2', 'http/1.1'] }));
    await until(() => sockets.length === 1);

    leave(client);

    // By no deadline: time stands still.
    await until(async () => (await failures(interception)) === 1);
    expect(sockets).toHaveLength(1);
  });
});
