import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { connect, createSecureContext, type TLSSocket } from 'node:tls';
import { expect, it, onTestFinished, vi } from 'vitest';
import { peerOf } from '../../src/gateway/client-certificate.ts';
import { beginHandshake } from '../../src/gateway/connection.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { certificatesIn } from '../../src/platform/x509/pem.ts';
import { type Certificate, createCertificateAuthority } from '../support/certificate-authority.ts';

const trusted = createCertificateAuthority('callers');
const fingerprintsOf = (pem: string) => certificatesIn(pem).map(({ fingerprint256 }) => fingerprint256);
const LISTED = new Set(fingerprintsOf(trusted.cert));
const NOW = { wallMs: Date.now(), monotonicMs: 0 };
const NAME = 'spiffe://cluster.local/ns/shop/sa/web';

/**
 * The gateway's end of a connection to which a caller has shown this, by the gateway's own handshake: sockets of a `tls.Server` lose
 * the chain on Node 24.21 and 26.8 (https://github.com/nodejs/node/issues/65579).
 */
async function shown({ cert, key }: Certificate): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const secureContext = createSecureContext({
    ...createCertificateAuthority('servers').issue('gateway', '127.0.0.1'),
    ca: trusted.cert,
  });
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    beginHandshake({
      socket,
      secureContext,
      asksForCertificate: true,
      clock: systemClock,
      onSecured: resolve,
      onFailed: (_, why) => reject(new Error(why)),
    }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const client = connect({
    port,
    host: '127.0.0.1',
    cert,
    key,
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  });
  onTestFinished(() => void client.destroy());
  const socket = await promise;
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** How often the whole chain was asked for. */
function chainsRead(socket: TLSSocket): () => number {
  const read = vi.spyOn(socket, 'getPeerCertificate');
  return () => read.mock.calls.filter(([detailed]) => detailed === true).length;
}

it('a trusted caller has its whole chain read', async () => {
  const socket = await shown(trusted.issue('web', NAME));
  const chains = chainsRead(socket);

  const peer = peerOf(socket, LISTED, NOW);

  expect(peer).toMatchObject({ kind: 'named', caller: { uri: NAME } });
  expect(chains()).toBe(1);
});

it('an untrusted caller has only its own certificate read, though it may send hundreds', async () => {
  const strangers = createCertificateAuthority('strangers');
  const { cert, key } = strangers.intermediate('below').issue('web', NAME);
  const socket = await shown({ cert: `${cert}${strangers.cert}`, key });
  const chains = chainsRead(socket);

  expect(peerOf(socket, LISTED, NOW)).toMatchObject({
    kind: 'refused',
    why: expect.stringContaining('is not trusted'),
  });
  expect(chains()).toBe(0);
});

it('a caller is known though it sends an expired intermediate certificate before the valid one', async () => {
  const below = trusted.intermediate('below');
  const ended = trusted.reissue(below, new Date(NOW.wallMs - 86_400_000));
  const { cert, key } = below.issue('web', NAME);

  for (const above of [`${ended}${below.cert}`, `${below.cert}${ended}`]) {
    const peer = peerOf(await shown({ cert: `${cert}${above}`, key }), LISTED, NOW);
    expect(peer).toMatchObject({
      kind: 'named',
      caller: { uri: NAME },
      endsAt: { wallMs: Date.UTC(2049, 11, 31, 23, 59, 59) },
    });
  }
});

it('a caller is trusted by the authorities above it, or by all if they are unknown', async () => {
  const below = trusted.intermediate('below');
  const ended = trusted.reissue(below, new Date(NOW.wallMs - 86_400_000));
  const { cert, key } = below.issue('web', NAME);
  const other = fingerprintsOf(createCertificateAuthority('others').cert);
  const [root, own] = [fingerprintsOf(trusted.cert), fingerprintsOf(below.cert)];
  const authorities = async (above: string, listed: readonly string[]) =>
    peerOf(await shown({ cert: `${cert}${above}`, key }), new Set(listed), NOW);

  expect(await authorities(below.cert, [...root, ...other])).toMatchObject({ authorities: root });
  expect(await authorities(below.cert, [...root, ...own])).toMatchObject({ authorities: [...own, ...root] });
  const all = [...root, ...other];
  expect(await authorities(`${ended}${below.cert}`, all)).toMatchObject({ authorities: all });
  expect(await authorities(below.cert, other)).toMatchObject({ kind: 'refused' });
});
