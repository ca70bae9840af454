import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { selfSigned } from './certificate.ts';
import { FIRST, TOKEN_MARK } from './fake-bearer.ts';
import { CHUNKED, chunk, get, message, ok, post } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar, temporaryFile, until } from './sidecar.ts';

const TRUSTED = selfSigned('127.0.0.1', 'api.example.test');
const OTHER = selfSigned('127.0.0.1');

describe('an upstream behind TLS', () => {
  it('gets the token, and its connection is reused', async () => {
    const upstream = await startUpstream(answering(ok('private')), TRUSTED);
    const caFile = await temporaryFile('ca.crt', TRUSTED.cert);
    const sidecar = await startSidecar({ upstream, route: { tls: { caFile } } });
    const client = await sidecar.connect();

    expect((await client.send(get('/1')).response()).body).toBe('private');
    expect((await client.send(post('/2', 'x'.repeat(200_000))).response()).body).toBe('private');

    expect(upstream.requests.map(({ head }) => head.values('authorization'))).toEqual([[FIRST], [FIRST]]);
    expect((await upstream.requests[1]?.body())?.text).toHaveLength(200_000);
    expect(upstream.connections).toHaveLength(1);
  });

  it('is asked for and checked by `serverName` when that is set', async () => {
    const named = selfSigned('api.example.test');
    const asked = Promise.withResolvers<string>();
    const upstream = await startUpstream(answering(ok('private')), {
      ...named,
      SNICallback: (name, done) => {
        asked.resolve(name);
        done(null);
      },
    });
    const caFile = await temporaryFile('ca.crt', named.cert);
    const sidecar = await startSidecar({
      upstream,
      route: { tls: { caFile, serverName: 'api.example.test' } },
    });

    expect((await sidecar.exchange(get('/'))).body).toBe('private');

    expect(await asked.promise).toBe('api.example.test');
  });

  it('is shown the client certificate', async () => {
    const identity = selfSigned('client.example.test');
    const upstream = await startUpstream(answering(ok('private')), {
      ...TRUSTED,
      ca: identity.cert,
      requestCert: true,
      rejectUnauthorized: true,
    });
    const caFile = await temporaryFile('ca.crt', TRUSTED.cert);
    const certFile = await temporaryFile('tls.crt', identity.cert);
    const keyFile = await temporaryFile('tls.key', identity.key);
    const sidecar = await startSidecar({ upstream, route: { tls: { caFile, certFile, keyFile } } });

    expect((await sidecar.exchange(get('/'))).body).toBe('private');
  });

  it('is not made to shake hands in full for every connection', async () => {
    const resumed: boolean[] = [];
    const upstream = await startUpstream((arrived) => {
      resumed.push((arrived.connection.socket as TLSSocket).isSessionReused());
      arrived.answer(ok('', 'Connection: close'));
    }, TRUSTED);
    const caFile = await temporaryFile('ca.crt', TRUSTED.cert);
    const sidecar = await startSidecar({ upstream, route: { tls: { caFile } } });

    for (const target of ['/1', '/2', '/3']) {
      expect((await sidecar.exchange(get(target))).status).toBe(200);
      await upstream.connections.at(-1)?.closed();
    }

    expect(resumed).toEqual([false, true, true]);
  });

  it('that breaks off amid an answer leaves the app no clean end', async () => {
    const upstream = await startUpstream((arrived) => {
      arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('hello')));
      arrived.connection.end();
    }, TRUSTED);
    const caFile = await temporaryFile('ca.crt', TRUSTED.cert);
    const sidecar = await startSidecar({ upstream, route: { tls: { caFile } } });
    const client = await sidecar.connect();

    client.send(get('/'));

    await client.closed();
    expect(client.received.text).not.toMatch(/\r\n0\r\n/);
  });
});

describe('no token goes to an upstream that cannot prove who it is', () => {
  it('an unknown issuer', async () => {
    const upstream = await startUpstream(answering(ok()), OTHER);
    const caFile = await temporaryFile('ca.crt', TRUSTED.cert);
    const sidecar = await startSidecar({ upstream, route: { tls: { caFile } } });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_tls_error');
    expect(upstream.text).toBe('');
  });

  it("an issuer that only the test knows, with the system's trust", async () => {
    const upstream = await startUpstream(answering(ok()), TRUSTED);
    const sidecar = await startSidecar({ upstream });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_tls_error');
    expect(upstream.text).toBe('');
  });

  it.each([
    ['another name', 'wrong.example.test', {}],
    ['not the name in `serverName`', '127.0.0.1', { serverName: 'api.example.test' }],
  ])('a certificate of %s', async (_, name, tls) => {
    const certificate = selfSigned(name);
    const upstream = await startUpstream(answering(ok()), certificate);
    const caFile = await temporaryFile('ca.crt', certificate.cert);
    const sidecar = await startSidecar({ upstream, route: { tls: { caFile, ...tls } } });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_tls_error');
    expect(upstream.text).toBe('');
  });

  it('one that does not speak TLS', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, route: { upstream: { protocol: 'https' } } });
    const client = await sidecar.connect();
    client.send(get('/'));
    await until(() => upstream.connections.length === 1);

    upstream.connections[0]?.send('HTTP/1.1 400 Bad Request\r\n\r\n');

    expectProblem(await client.response(), 'upstream_tls_error');
    expect(upstream.text).not.toContain(TOKEN_MARK);
  });
});
