import { writeFile } from 'node:fs/promises';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { until } from '../support/until.ts';
import { selfSigned } from './certificate.ts';
import { FIRST, TOKEN_MARK } from './fake-bearer.ts';
import { CHUNKED, chunk, get, message, ok, post } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';
import { temporaryFile } from './temporary-file.ts';

const TRUSTED = selfSigned('127.0.0.1', 'api.example.test');
const OTHER = selfSigned('127.0.0.1');

/** More than the system keeps for a reader that has stopped reading. */
const LARGE_BYTES = 20_000_000;

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

  it('is requested and verified by tls.serverName if that is set', async () => {
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

  it('gets the client certificate', async () => {
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

  it('resumes sessions instead of making a full handshake for every connection', async () => {
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

  it('that breaks off amid an answer leaves the app with an incomplete answer', async () => {
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

describe('an answer that ends with its TLS connection', () => {
  const BODY = 'x'.repeat(50_000);
  const OPEN_ENDED = message('HTTP/1.1 200 OK', [], BODY);

  async function start(minVersion: 'TLSv1.2' | 'TLSv1.3', end: 'end' | 'destroy' | 'reset') {
    const upstream = await startUpstream(
      inTurn(
        (arrived) => {
          arrived.connection.socket.write(OPEN_ENDED, () => arrived.connection[end]());
        },
        answering(ok('next')),
      ),
      { ...TRUSTED, minVersion, maxVersion: minVersion },
    );
    const caFile = await temporaryFile('ca.crt', TRUSTED.cert);
    return startSidecar({ upstream, route: { tls: { caFile } } });
  }

  const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;

  it.each(VERSIONS)('is complete after close_notify: %s', async (version) => {
    const sidecar = await start(version, 'end');
    const client = await sidecar.connect();

    expect((await client.send(get('/')).response()).body).toBe(BODY);
    expect((await client.send(get('/')).response()).body).toBe('next');
  });

  it.each(
    VERSIONS.flatMap((version) => (['destroy', 'reset'] as const).map((end) => [version, end] as const)),
  )('is cut for the app without close_notify: %s, by %s', async (version, end) => {
    const sidecar = await start(version, end);
    const client = await sidecar.connect();

    client.send(get('/'));

    await client.closed();
    expect(client.received.text).not.toMatch(/\r\n0\r\n/);
    await sidecar.idle();
    expect(await sidecar.metric('proxy_errors_total', { error: 'upstream_protocol_error' })).toBe(1);
  });

  it('is complete when the app read it too slowly', async () => {
    const upstream = await startUpstream((arrived) => {
      arrived.answer(message('HTTP/1.1 200 OK', []));
      arrived.connection.socket.end(Buffer.alloc(LARGE_BYTES, 'x'));
    }, TRUSTED);
    const caFile = await temporaryFile('ca.crt', TRUSTED.cert);
    const sidecar = await startSidecar({
      upstream,
      route: { tls: { caFile }, timeouts: { responseMs: 600_000, idleMs: 600_000 } },
    });
    const client = await sidecar.connect();
    client.received.discard();
    client.socket.pause();
    client.send(get('/', 'Connection: close'));
    await upstream.request();
    await sidecar.fence();
    client.socket.resume();

    expect(await client.closed()).toBe('end');
    await sidecar.idle();
    expect(await sidecar.metric('proxy_errors_total')).toBe(0);
  });
});

describe('after the trusted certificates changed, existing connections', () => {
  /** How often the files are looked at. */
  const LOOK_MS = 10_000;

  async function start() {
    const clock = new ShiftedClock();
    const upstream = await startUpstream(undefined, TRUSTED);
    const caFile = await temporaryFile('ca.crt', TRUSTED.cert);
    const sidecar = await startSidecar({
      upstream,
      clock,
      route: { tls: { caFile }, timeouts: { responseMs: 60_000, idleMs: 60_000 } },
      limits: { headerTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000 },
    });
    /** The upstream's own certificate stays trusted; another is, too. */
    const replaceTrust = async (): Promise<void> => {
      await writeFile(caFile, TRUSTED.cert + OTHER.cert);
      clock.advance(LOOK_MS);
      await until(() => sidecar.logLines.some((line) => line.includes('TLS files changed')));
    };
    return { upstream, sidecar, replaceTrust };
  }

  it('carry no further request if they were idle', async () => {
    const { upstream, sidecar, replaceTrust } = await start();
    const first = sidecar.exchange(get('/1'));
    (await upstream.request()).answer(ok('first'));
    await first;

    await replaceTrust();
    await upstream.connections[0]?.closed();
    const second = sidecar.exchange(get('/2'));
    (await upstream.request()).answer(ok('second'));

    expect((await second).body).toBe('second');
    expect(upstream.connections).toHaveLength(2);
  });

  it('carry no further request if they were busy, and close after the one they carry', async () => {
    const { upstream, sidecar, replaceTrust } = await start();
    const first = sidecar.exchange(get('/1'));
    const arrived = await upstream.request();

    await replaceTrust();
    arrived.answer(ok('first'));
    expect((await first).body).toBe('first');
    await arrived.connection.closed();
    const second = sidecar.exchange(get('/2'));
    (await upstream.request()).answer(ok('second'));

    expect((await second).body).toBe('second');
    expect(upstream.connections).toHaveLength(2);
  });
});

describe('no token is sent to an upstream that cannot prove its identity', () => {
  it('because of an unknown issuer', async () => {
    const upstream = await startUpstream(answering(ok()), OTHER);
    const caFile = await temporaryFile('ca.crt', TRUSTED.cert);
    const sidecar = await startSidecar({ upstream, route: { tls: { caFile } } });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_tls_error');
    expect(upstream.text).toBe('');
  });

  it('because the system’s trust does not include the issuer', async () => {
    const upstream = await startUpstream(answering(ok()), TRUSTED);
    const sidecar = await startSidecar({ upstream });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_tls_error');
    expect(upstream.text).toBe('');
  });

  it.each([
    ['another name', 'wrong.example.test', {}],
    ['not the name in `serverName`', '127.0.0.1', { serverName: 'api.example.test' }],
  ])('because of a certificate of %s', async (_, name, tls) => {
    const certificate = selfSigned(name);
    const upstream = await startUpstream(answering(ok()), certificate);
    const caFile = await temporaryFile('ca.crt', certificate.cert);
    const sidecar = await startSidecar({ upstream, route: { tls: { caFile, ...tls } } });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_tls_error');
    expect(upstream.text).toBe('');
  });

  it('because it does not speak TLS', async () => {
    const upstream = await startUpstream(undefined, 'plain');
    const sidecar = await startSidecar({ upstream, route: { upstream: { protocol: 'https' } } });
    const client = await sidecar.connect();
    client.send(get('/'));
    await until(() => upstream.connections.length === 1);

    upstream.connections[0]?.send('HTTP/1.1 400 Bad Request\r\n\r\n');

    expectProblem(await client.response(), 'upstream_tls_error');
    expect(upstream.text).not.toContain(TOKEN_MARK);
  });
});
