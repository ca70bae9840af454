import type { TlsOptions } from 'node:tls';
import { describe, expect, it } from 'vitest';
import type { EgressProxyConfig } from '../../src/config/config.ts';
import { type ConnectProxyOptions, startConnectProxy } from '../support/connect-proxy.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { selfSigned } from './certificate.ts';
import { FakeBearer, FIRST, TOKEN_MARK } from './fake-bearer.ts';
import { connectHttp2 } from './http2/raw-http2-client.ts';
import { startHttp2 } from './http2-upstream/node-upstream.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, inTurn, type Script, startUpstream } from './raw-upstream.ts';
import { forwardTo, type RouteOverrides, startSidecar } from './sidecar.ts';
import { temporaryFile } from './temporary-file.ts';

const UPSTREAM = { protocol: 'https', host: 'api.test', port: 443, authority: 'api.test' } as const;

interface Behind {
  readonly answers?: ConnectProxyOptions;
  readonly route?: RouteOverrides;
  readonly egress?: Partial<EgressProxyConfig>;
  /** Of the upstream's TLS. */
  readonly tls?: TlsOptions;
  readonly bearer?: FakeBearer;
}

/** An upstream that is known by its name to the proxy alone. */
async function behindProxy(
  script: Script,
  { answers = {}, route = {}, egress = {}, tls = {}, bearer = new FakeBearer() }: Behind = {},
) {
  const certificate = selfSigned('api.test');
  const upstream = await startUpstream(script, { ...certificate, ...tls });
  const caFile = await temporaryFile('ca.crt', certificate.cert);
  const proxy = await startConnectProxy(upstream.address, answers);
  const egressProxy = { ...proxy.config, ...egress };
  const sidecar = await startSidecar({
    upstream,
    bearer,
    route: { tls: { caFile }, ...route, upstream: UPSTREAM, egressProxy },
  });
  return { upstream, proxy, sidecar, caFile };
}

describe('through an egress proxy', () => {
  it('a request reaches its upstream inside TLS, on a connection that is reused', async () => {
    const { upstream, proxy, sidecar } = await behindProxy(answering(ok('hello')));
    const client = await sidecar.connect();
    expect((await client.send(get('/a')).response()).body).toBe('hello');
    expect((await client.send(get('/b')).response()).body).toBe('hello');
    expect(proxy.asked).toEqual(['CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n']);
    expect(upstream.requests.map(({ head }) => head.values('authorization'))).toEqual([[FIRST], [FIRST]]);
    expect(upstream.requests[0]?.head.value('host')).toBe('api.test');
  });

  it('bodies of any size pass in both directions', async () => {
    const large = 'x'.repeat(1_000_000);
    const { upstream, sidecar } = await behindProxy(async (arrived) => {
      const { text } = await arrived.body();
      arrived.answer(ok(text));
    });
    const answered = await sidecar.exchange(
      `${request('POST', '/', [CHUNKED])}${chunk(large)}${LAST_CHUNK}`,
      'POST',
    );
    expect(answered.body.length).toBe(large.length);
    expect(upstream.connections).toHaveLength(1);
  });

  it('HTTP/2 works, and a body that the app does not read holds the upstream back', async () => {
    const upstream = await startHttp2(
      (arrived) => {
        arrived.stream.respond({ ':status': 200 });
        arrived.stream.end(`${arrived.headers.authorization}`);
      },
      {},
      {},
      'tls',
    );
    const proxy = await startConnectProxy(upstream.address);
    const tls = { caFile: upstream.caFile as string, serverName: 'localhost' };
    const sidecar = await startSidecar({
      upstream,
      route: { protocol: 'h2', tls, upstream: UPSTREAM, egressProxy: proxy.config },
    });
    const client = await connectHttp2(sidecar);
    const answers = [client.get('/a'), client.get('/b')].map((id) => client.answer(id));
    expect((await Promise.all(answers)).map(({ body }) => body)).toEqual([FIRST, FIRST]);
    expect(proxy.asked).toHaveLength(1);
  });

  it('a host of the forward proxy is reached by the requested name', async () => {
    const { upstream, proxy, caFile } = await behindProxy(answering(ok('forwarded')));
    const entry = { host: 'api.test', port: 443, upgradeToTls: true, tls: { caFile } };
    const sidecar = await startSidecar({
      forwardProxy: forwardTo(upstream, { ...entry, egressProxy: proxy.config }),
    });
    const bytes = message('GET http://api.test:443/ HTTP/1.1', ['Host: api.test:443']);
    expect((await sidecar.exchange(bytes)).body).toBe('forwarded');
    expect(proxy.asked[0]).toContain('CONNECT api.test:443 ');
  });

  it('the credentials are read anew from the Secret for each connection', async () => {
    const secret = await mountSecret({ username: 'pod', password: 'one' });
    const { proxy, sidecar, upstream } = await behindProxy(
      (arrived) => {
        arrived.answer(ok('', 'Connection: close'));
        arrived.connection.end();
      },
      { egress: { credentialsDirectory: secret.directory } },
    );
    await sidecar.exchange(get('/'));
    await secret.update({ username: 'pod', password: 'two' });
    await upstream.connections[0]?.closed();
    await sidecar.exchange(get('/'));
    const credentials = proxy.asked.map((head) => /Proxy-Authorization: Basic (.*)\r\n/.exec(head)?.[1]);
    expect(credentials.map((text) => Buffer.from(text ?? '', 'base64').toString())).toEqual([
      'pod:one',
      'pod:two',
    ]);
    expect(upstream.text).not.toContain('proxy-authorization');
  });

  it('hosts listed in noProxy are reached directly', async () => {
    const { proxy, sidecar } = await behindProxy(answering(ok()), { egress: { noProxy: ['.test'] } });
    // Nobody knows the name but the proxy.
    expectProblem(await sidecar.exchange(get('/')), 'upstream_unreachable');
    expect(proxy.asked).toEqual([]);
  });

  it('interim answers and bytes that follow the 200 to CONNECT are understood', async () => {
    const consent = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.0 200\r\n\r\n';
    const { sidecar } = await behindProxy(answering(ok('hello')), { answers: { consent } });
    expect((await sidecar.exchange(get('/'))).body).toBe('hello');
  });
});

describe('if the egress proxy opens no tunnel, the error names the proxy and nothing is sent', () => {
  it.each<[string, string | undefined, 'upstream_unreachable' | 'upstream_timeout', string]>([
    [
      'it wants credentials',
      'HTTP/1.1 407 Auth\r\nContent-Length: 0\r\n\r\n',
      'upstream_unreachable',
      'answered CONNECT with 407: check egressProxy.credentialsDir',
    ],
    [
      'it refuses the host',
      'HTTP/1.1 403 Forbidden\r\n\r\n',
      'upstream_unreachable',
      'answered CONNECT with 403',
    ],
    [
      'it cannot reach it',
      'HTTP/1.1 502 Bad Gateway\r\n\r\n',
      'upstream_unreachable',
      'answered CONNECT with 502',
    ],
    [
      'it is none',
      'SSH-2.0-OpenSSH_9.9\r\n\r\n',
      'upstream_unreachable',
      'did not answer CONNECT in HTTP/1.1',
    ],
    ['it hangs up', '', 'upstream_unreachable', 'closed the connection without a whole answer to CONNECT'],
    [
      'it breaks off',
      'HTTP/1.1 200 OK\r\nX: ',
      'upstream_unreachable',
      'closed the connection without a whole answer',
    ],
    [
      'it says too much',
      `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(8200)}\r\n\r\n`,
      'upstream_unreachable',
      'a head of more than 8192 bytes',
    ],
    ['it says too much of nothing', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(400), 'upstream_unreachable', ''],
    ['it says nothing', undefined, 'upstream_unreachable', 'gave no tunnel within 0.475 s'],
  ])('when %s', async (_, answer, code, detail) => {
    const { sidecar, upstream } = await behindProxy(answering(ok()), {
      answers: { answer },
      route: { timeouts: { connectMs: 500 } },
    });
    const answered = await sidecar.exchange(get('/'));
    expectProblem(answered, code);
    expect(JSON.parse(answered.body).detail).toContain(`the egress proxy 127.0.0.1:`);
    expect(JSON.parse(answered.body).detail).toContain(detail);
    expect(upstream.connections).toEqual([]);
  });

  it('when it does not listen', async () => {
    const { sidecar } = await behindProxy(answering(ok()), { egress: { port: 9 } });
    const answered = await sidecar.exchange(get('/'));
    expectProblem(answered, 'upstream_unreachable');
    expect(JSON.parse(answered.body).detail).toContain(
      'the egress proxy 127.0.0.1:9 cannot be reached: ECONNREFUSED',
    );
  });

  it('when its credentials are not mounted', async () => {
    const egress = { credentialsDirectory: '/nowhere' };
    const { sidecar, proxy } = await behindProxy(answering(ok()), { egress });
    const answered = await sidecar.exchange(get('/'));
    expect(JSON.parse(answered.body).detail).toContain('cannot be asked: /nowhere/username does not exist');
    expect(proxy.asked).toEqual([]);
  });

  it('when the host inside the tunnel is not the upstream', async () => {
    const { upstream, sidecar } = await behindProxy(answering(ok()), {
      route: { tls: { serverName: 'other.test' } },
    });
    expectProblem(await sidecar.exchange(get('/')), 'upstream_tls_error');
    expect(upstream.text).not.toContain(TOKEN_MARK);
  });
});

describe('an answer that ends with its connection, through an egress proxy,', () => {
  const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;
  const SIZES = [0, 5, 50_000, 3_000_000];

  /** The request is answered by a body of this size, of which nothing but the end of the connection says where it ends. */
  async function answered(version: (typeof VERSIONS)[number], bytes: number, end: 'end' | 'destroy') {
    const { sidecar } = await behindProxy(
      (arrived) => {
        const answer = message('HTTP/1.1 200 OK', [], 'x'.repeat(bytes));
        arrived.connection.socket.write(answer, () => arrived.connection[end]());
      },
      { tls: { minVersion: version, maxVersion: version } },
    );
    return { sidecar, client: await sidecar.connect() };
  }

  it.each(VERSIONS.flatMap((version) => SIZES.map((bytes) => [version, bytes] as const)))(
    'is complete when the upstream ends it with close_notify: %s, %i bytes',
    async (version, bytes) => {
      const { client } = await answered(version, bytes, 'end');
      expect((await client.send(get('/1')).response()).body.length).toBe(bytes);
      expect((await client.send(get('/2')).response()).body.length).toBe(bytes);
    },
  );

  it.each(VERSIONS.flatMap((version) => SIZES.map((bytes) => [version, bytes] as const)))(
    'is cut for the app without close_notify: %s, %i bytes',
    async (version, bytes) => {
      const { client } = await answered(version, bytes, 'destroy');
      client.send(get('/'));
      await client.closed();
      expect(client.received.text).not.toMatch(/\r\n0\r\n/);
    },
  );

  it.each(['end', 'destroy'] as const)('is told apart from a cut one after being held: %s', async (end) => {
    const other = Promise.withResolvers<undefined>();
    const bearer = new FakeBearer({ replace: () => other.promise });
    const { proxy, sidecar } = await behindProxy(
      inTurn((arrived) => {
        const answer = message('HTTP/1.1 401 Unauthorized', [], 'x'.repeat(50_000));
        arrived.connection.socket.write(answer, () => arrived.connection[end]());
      }, answering(ok())),
      { bearer },
    );
    const client = await sidecar.connect();
    const sent = client.send(get('/'));
    await expect.poll(() => bearer.refused.length).toBe(1);
    await proxy.ended;
    await sidecar.fence();
    other.resolve(undefined);
    if (end === 'end') expect((await sent.response()).body.length).toBe(50_000);
    else {
      await client.closed();
      expect(client.received.text).not.toMatch(/\r\n0\r\n/);
    }
  });

  it('is complete when the app read it too slowly', async () => {
    const { sidecar } = await behindProxy(
      (arrived) => {
        arrived.answer(message('HTTP/1.1 200 OK', []));
        arrived.connection.socket.end(Buffer.alloc(20_000_000, 'x'));
      },
      { route: { timeouts: { responseMs: 600_000, idleMs: 600_000 } } },
    );
    const client = await sidecar.connect();
    client.received.discard();
    client.socket.pause();
    client.send(get('/', 'Connection: close'));
    await sidecar.fence();
    client.socket.resume();
    expect(await client.closed()).toBe('end');
    await sidecar.idle();
    expect(await sidecar.metric('proxy_errors_total')).toBe(0);
  });
});

it('when a tunnel breaks off its request fails, and the next request gets a new tunnel', async () => {
  const arrived = Promise.withResolvers<void>();
  let requests = 0;
  const { proxy, sidecar } = await behindProxy((asked) => {
    requests += 1;
    if (requests === 1) arrived.resolve();
    else asked.answer(ok('again'));
  });
  const cut = sidecar.exchange(request('POST', '/'));
  await arrived.promise;
  proxy.reset();
  expectProblem(await cut, 'upstream_protocol_error');
  expect((await sidecar.exchange(get('/'))).body).toBe('again');
});

it('no tunnel stays open at the egress proxy after the app left or the sidecar ended', async () => {
  const { proxy, sidecar } = await behindProxy(answering(ok()), { answers: { answer: undefined } });
  const client = await sidecar.connect();
  client.send(get('/'));
  await expect.poll(() => proxy.asked.length).toBe(1);
  client.destroy();
  await expect.poll(proxy.open).toBe(0);

  const other = await behindProxy(answering(ok()));
  await other.sidecar.exchange(get('/'));
  expect(other.proxy.open()).toBe(2);
  await other.sidecar.proxy.drain(0);
  await expect.poll(other.proxy.open).toBe(0);
});
