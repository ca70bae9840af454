/** What else an app, or an upstream, may come with where TLS is intercepted: nothing leaves with a token that should not. */

import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../src/proxy/tls/interception-ca.ts';
import { until } from '../../support/until.ts';
import { FIRST } from '../../wire/fake-bearer.ts';
import { message } from '../../wire/messages.ts';
import { expectProblem } from '../../wire/problem.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';
import { helloOf } from './hello.ts';
import { connectTo, HOST, intercepting, startTlsUpstream, tlsOf } from './intercepting.ts';

const LEAF_MS = 24 * 3_600_000;

const get = (port: number) => message('GET / HTTP/1.1', [`Host: ${HOST}:${port}`]);

/** encrypted_client_hello (draft-ietf-tls-esni), as a client that has no key for the host makes it up. */
const GREASE_ECH = Buffer.concat([
  Buffer.from([0xfe, 0x0d, 0, 42]),
  // Outer; HKDF-SHA256 and AES-128-GCM; a configuration's id; an empty key; 32 octets of payload.
  Buffer.from([0, 0, 1, 0, 1, 7, 0, 0, 0, 32]),
  Buffer.alloc(32, 0x5a),
]);

/** The ClientHello with one extension more. */
function withExtension(hello: Buffer, extension: Buffer): Buffer {
  const changed = Buffer.concat([hello, extension]);
  const added = extension.length;
  // The record, the handshake message in it, and behind session id, cipher suites and compression methods its extensions.
  changed.writeUInt16BE(hello.readUInt16BE(3) + added, 3);
  changed.writeUIntBE(hello.readUIntBE(6, 3) + added, 6, 3);
  let at = 5 + 4 + 2 + 32;
  at += 1 + (hello[at] as number);
  at += 2 + hello.readUInt16BE(at);
  at += 1 + (hello[at] as number);
  changed.writeUInt16BE(hello.readUInt16BE(at) + added, at);
  return changed;
}

describe('an intercepted host whose certificate has expired', () => {
  it('gets no token', async () => {
    const longAgo = Date.now() - 2 * LEAF_MS;
    const authority = createAuthority({ names: [HOST], nowMs: longAgo });
    const { chain, key } = authority.issue(HOST, longAgo);
    const upstream = await startTlsUpstream('both', { cert: chain, key });
    const caFile = await temporaryFile('authority.crt', authority.root);
    const interception = await intercepting({ ...upstream, caFile });
    const answer = await (await interception.secured()).send(get(upstream.port)).response();
    expectProblem(answer, 'upstream_tls_error');
    expect(answer.body).toContain('CERT_HAS_EXPIRED');
    expect(upstream.arrived).toEqual([]);
  });
});

describe('Encrypted Client Hello', () => {
  it('with the host as its outer name is answered without ECH', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const client = await interception.connected();
    client.send(withExtension(await helloOf({ servername: HOST }), GREASE_ECH));
    const head = Buffer.from(await client.received.exactly(6), 'latin1');
    // A handshake record with a ServerHello.
    expect([head[0], head[5]]).toEqual([22, 2]);
  });

  it('with another outer name is refused, as the inner name is unknown', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const client = await interception.connected();
    client.send(withExtension(await helloOf({ servername: 'public.example.net' }), GREASE_ECH));
    // A fatal alert: unrecognized_name.
    const alert = Buffer.from(await client.received.exactly(7), 'latin1');
    expect([...alert]).toEqual([21, 3, 3, 0, 2, 2, 112]);
    await client.closed();
    expect(upstream.secured()).toBe(0);
  });
});

describe('an app with an old version of TLS', () => {
  it('gets its token over TLS 1.2', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const client = await interception.secured({ maxVersion: 'TLSv1.2' });
    expect(tlsOf(client).getProtocol()).toBe('TLSv1.2');
    expect((await client.send(get(upstream.port)).response()).status).toBe(200);
    expect(upstream.arrived.map(({ authorization }) => authorization)).toEqual([FIRST]);
  });

  it('below TLS 1.2 is refused and counted', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    await expect(interception.secured(old)).rejects.toThrow(/protocol version/);
    const error = 'client_tls_error';
    await until(async () => (await interception.sidecar.metric('proxy_errors_total', { error })) === 1);
  });
});

describe('many intercepted connections', () => {
  it('count towards the common limit, and open ones are served', async () => {
    const most = 8;
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream, { limits: { maxConnections: most } });
    const clients = await Promise.all(Array.from({ length: most }, () => interception.secured()));
    const refused = await interception.sidecar.exchange(connectTo(`${HOST}:${upstream.port}`), 'CONNECT');
    expectProblem(refused, 'overloaded');
    for (const client of clients) {
      expect((await client.send(get(upstream.port)).response()).status).toBe(200);
    }
    // One that goes makes room.
    clients[0]?.destroy();
    await until(async () => {
      const client = await interception.sidecar.connect();
      const head = await client.send(connectTo(`${HOST}:${upstream.port}`)).head();
      client.destroy();
      return head.status === 200;
    });
  });
});
