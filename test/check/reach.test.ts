import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { about, type Destination } from '../../src/check/check-context.ts';
import { reach } from '../../src/check/reach.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { startConnectProxy } from '../support/connect-proxy.ts';
import { refusingPort } from '../support/free-port.ts';
import { examination, lines } from './examined.ts';

const STEPS = { name: 'upstream_name', connection: 'upstream_connection', tls: 'upstream_tls' } as const;
const authority = createCertificateAuthority('Test Root');

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function caFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'reach-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'ca.crt');
  await writeFile(path, authority.cert);
  return path;
}

function tlsServer(names: string[], ALPNProtocols: string[] = []): Promise<number> {
  const server = createTlsServer({ ...authority.issue('server', ...names), ALPNProtocols }, (socket) =>
    socket.on('error', () => undefined),
  );
  server.on('tlsClientError', () => undefined);
  return listening(server);
}

async function reached(to: Partial<Destination> & Pick<Destination, 'port'>) {
  const destination: Destination = {
    protocol: 'https',
    host: '127.0.0.1',
    tls: {},
    offers: ['h2', 'http/1.1'],
    withinMs: 5000,
    ...to,
  };
  const outcome = await reach(destination, STEPS, about('route a'), examination());
  return { ...outcome, text: lines(outcome.findings) };
}

describe('TLS', () => {
  it('tells name, days, issuer, and who is trusted for it', async () => {
    const ca = await caFile();
    const port = await tlsServer(['127.0.0.1', 'api.example.com'], ['h2']);
    const { text, isReached } = await reached({ port, tls: { caFile: ca } });
    expect(text).toEqual([
      expect.stringMatching(/^ok route a: upstream: https:\/\/127\.0\.0\.1:\d+ reached in \d+ ms$/),
      expect.stringMatching(
        new RegExp(
          `^ok route a: upstream TLS: TLSv1\\.3, certificate of 127\\.0\\.0\\.1 and 1 more, \\d+ days left, signed by Test Root, trusted through Test Root of ${ca}; speaks h2$`,
        ),
      ),
    ]);
    expect(isReached).toBe(true);
  });

  it('tells of an authority that nobody trusts, and what to set', async () => {
    const { text, isReached } = await reached({ port: await tlsServer(['127.0.0.1']) });
    expect(text[1]).toMatch(/^failure route a: upstream TLS: .*signed by Test Root: [A-Z_]+ → .*tls\.caFile/);
    expect(isReached).toBe(false);
  });

  it('tells of a certificate for another name', async () => {
    const port = await tlsServer(['other.example.com']);
    const { text } = await reached({ port, tls: { caFile: await caFile() } });
    expect(text[1]).toMatch(
      /certificate of other\.example\.com.*ERR_TLS_CERT_ALTNAME_INVALID → .*tls\.serverName/,
    );
    const named = await reached({ port, tls: { caFile: await caFile(), serverName: 'other.example.com' } });
    expect(named.isReached).toBe(true);
  });

  it('tells of an upstream that does not speak what the route says', async () => {
    const port = await tlsServer(['127.0.0.1'], ['http/1.1']);
    const to = { port, tls: { caFile: await caFile() }, speaks: 'h2' as const };
    expect((await reached(to)).text[1]).toMatch(/^failure .*does not choose h2 → set protocol/);
  });
});

describe('HTTP/2 in clear text', () => {
  const h2c = { protocol: 'http', speaks: 'h2c' } as const;

  it('is spoken', async () => {
    const server = createHttp2Server();
    // Of a client that leaves after the greeting.
    server.on('sessionError', () => undefined);
    const { text, isReached } = await reached({ ...h2c, port: await listening(server) });
    expect(text).toEqual([expect.stringMatching(/^ok route a: upstream: http:.* reached in \d+ ms$/)]);
    expect(isReached).toBe(true);
  });

  it('is not spoken by a server of HTTP/1.1', async () => {
    const port = await listening(createHttpServer());
    const { text, findings, isReached } = await reached({ ...h2c, port });
    expect(text).toEqual([
      `failure route a: upstream: http://127.0.0.1:${port} does not speak HTTP/2, and the route says protocol: h2c → name the port on which it does: gRPC needs one; for an upstream of HTTP/1.1 leave protocol out`,
    ]);
    expect(findings[0]).toMatchObject({ failure: 'configuration' });
    expect(isReached).toBe(false);
  });

  it('is doubtful of one that hangs up', async () => {
    const port = await listening(createServer((socket) => void socket.on('error', () => undefined).end()));
    const { text, isReached } = await reached({ ...h2c, port });
    expect(text).toEqual([
      expect.stringMatching(/^warning route a: upstream: .*hangs up on a greeting of HTTP\/2 \(.+\), and/),
    ]);
    expect(isReached).toBe(true);
  });

  it('is not asked of one that takes no more connections', async () => {
    let connections = 0;
    const server = createServer((socket) => {
      socket.on('error', () => undefined).on('data', () => socket.destroy());
      // The first is that which was reached, the second is greeted in TLS.
      if (++connections === 2) server.close();
    });
    const { text, findings, isReached } = await reached({ ...h2c, port: await listening(server) });
    expect(text).toEqual([expect.stringMatching(/^failure route a: upstream: http:.*: ECONNREFUSED → /)]);
    expect(findings[0]).toMatchObject({ failure: 'provider_unavailable' });
    expect(isReached).toBe(false);
  });

  it('is doubtful of one that is silent', async () => {
    const silent = createServer((socket) => void socket.on('error', () => undefined).resume());
    const { text, isReached } = await reached({ ...h2c, port: await listening(silent), withinMs: 100 });
    expect(text).toEqual([
      expect.stringMatching(
        /^warning route a: upstream: .*says nothing to a greeting of HTTP\/2 \(no answer within 100 ms\)/,
      ),
    ]);
    expect(isReached).toBe(true);
  });
});

/** Each connection goes to the server that its first bytes choose. */
function sorted(choose: (first: string) => Server | ((socket: Socket) => void)): Promise<number> {
  return listening(
    createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', (first: Buffer) => {
        socket.pause();
        socket.unshift(first);
        const chosen = choose(first.toString('latin1'));
        if (typeof chosen === 'function') chosen(socket);
        else chosen.emit('connection', socket);
      });
    }),
  );
}

describe('HTTP/2 alone, where the route speaks HTTP/1.1', () => {
  const http2 = () => {
    const server = createHttp2Server();
    server.on('sessionError', () => undefined);
    return server;
  };
  const alone =
    /^failure route a: upstream: http:\S+ speaks HTTP\/2 alone, as gRPC servers do, and .* → set protocol: h2c$/;

  it.each(['auto', 'http1'] as const)('fails: %s', async (speaks) => {
    const { text, findings, isReached } = await reached({
      protocol: 'http',
      speaks,
      port: await listening(http2()),
    });
    expect(text).toEqual([expect.stringMatching(alone)]);
    expect(findings[0]).toMatchObject({ failure: 'configuration' });
    expect(isReached).toBe(false);
  });

  it('fails of a server that says so by HTTP/1.1, as Kestrel does', async () => {
    const refusal =
      'HTTP/1.1 400 Bad Request\r\n\r\nAn HTTP/1.x request was sent to an HTTP/2 only endpoint.';
    const port = await sorted((first) =>
      first.startsWith('PRI ') ? http2() : (socket) => void socket.resume().end(refusal),
    );
    expect((await reached({ protocol: 'http', speaks: 'auto', port })).text[0]).toMatch(alone);
  });

  it('is not seen in one that speaks both', async () => {
    const both = { http1: createHttpServer(), http2: http2() };
    const port = await sorted((first) => (first.startsWith('PRI ') ? both.http2 : both.http1));
    const { text } = await reached({ protocol: 'http', speaks: 'auto', port });
    expect(text).toEqual([expect.stringMatching(/^ok route a: upstream: http:.* reached in \d+ ms$/)]);
  });

  it('over TLS: is no fault if HTTP/1.1 is refused by ALPN', async () => {
    const to = { port: await tlsServer(['127.0.0.1'], ['h2']), tls: { caFile: await caFile() } };
    expect((await reached({ ...to, speaks: 'auto' })).text[1]).toMatch(/^ok .*; speaks h2 alone$/);
    const http1 = await reached({ ...to, speaks: 'http1', offers: ['http/1.1'] });
    expect(http1.text[1]).toMatch(
      /^failure .*offered, http\/1\.1 \(\w*NO_APPLICATION_PROTOCOL\) → set protocol: auto$/,
    );
  });

  it('over TLS: costs the first request if HTTP/1.1 is let in and then cut, as Go does', async () => {
    const identity = authority.issue('server', '127.0.0.1');
    const withAlpn = createTlsServer({ ...identity, ALPNProtocols: ['h2'] }, (socket) => {
      socket.on('error', () => undefined);
    });
    const withoutAlpn = createTlsServer(identity, (socket) => {
      socket.on('error', () => undefined).once('data', () => socket.destroy());
    });
    const port = await sorted((hello) => (hello.includes('\x02h2') ? withAlpn : withoutAlpn));
    const { text, isReached } = await reached({ port, speaks: 'auto', tls: { caFile: await caFile() } });
    expect(text[1]).toMatch(/^warning .*; speaks h2 alone: .*closed without an answer → set protocol: h2; /);
    expect(isReached).toBe(true);
  });

  it('over TLS: is not seen in one that speaks both', async () => {
    const to = { port: await tlsServer(['127.0.0.1'], ['h2', 'http/1.1']), tls: { caFile: await caFile() } };
    expect((await reached({ ...to, speaks: 'auto' })).text[1]).toMatch(/^ok .*; speaks h2$/);
  });
});

describe('the wrong scheme', () => {
  it('https to a port that speaks HTTP in clear', async () => {
    const port = await listening(createHttpServer());
    const { text, findings } = await reached({ port });
    expect(text[1]).toMatch(/does not speak TLS \(\w+\), and the URL says https → write http:\/\/127/);
    expect(findings[1]).toMatchObject({ verdict: 'failure', failure: 'configuration' });
  });

  it('http to a port that speaks TLS, whatever its certificate', async () => {
    const port = await tlsServer(['other.example.com']);
    const { text, isReached } = await reached({ port, protocol: 'http' });
    expect(text).toEqual([
      `failure route a: upstream: http://127.0.0.1:${port} is a port that speaks TLS, and the URL says http → write https://127.0.0.1:${port}`,
    ]);
    expect(isReached).toBe(false);
  });

  it('http to a port that wants a client certificate by TLS', async () => {
    const server = createTlsServer({ ...authority.issue('server', '127.0.0.1'), requestCert: true });
    server.on('tlsClientError', () => undefined);
    const { isReached } = await reached({ port: await listening(server), protocol: 'http' });
    expect(isReached).toBe(false);
  });

  it('is not seen in a server of HTTP, nor in one that is silent', async () => {
    expect((await reached({ port: await listening(createHttpServer()), protocol: 'http' })).isReached).toBe(
      true,
    );
    const silent = createServer((socket) => void socket.on('error', () => undefined).resume());
    expect(
      (await reached({ port: await listening(silent), protocol: 'http', withinMs: 200 })).isReached,
    ).toBe(true);
  });
});

describe('what does not get there', () => {
  it('a refused connection', async () => {
    const port = await refusingPort();
    expect((await reached({ port })).text).toEqual([
      `failure route a: upstream: https://127.0.0.1:${port}: ECONNREFUSED → check host and port, and NetworkPolicies`,
    ]);
  });

  it.each([
    ['of its own', 'nowhere.invalid', undefined, /name: nowhere\.invalid: ENOTFOUND → check the spelling/],
    [
      'of its egress proxy',
      'api.test',
      'nowhere.invalid',
      /name: egressProxy\.url: nowhere\.invalid: ENOTFOUND →/,
    ],
  ])('a name %s that is not known', async (_, host, proxy, said) => {
    const { text } = await reached({
      host,
      port: 443,
      ...(proxy === undefined ? {} : { egressProxy: { host: proxy, port: 3128, noProxy: [] } }),
      lookup: (_name, _options, callback) => {
        callback(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }), '', 4);
      },
    });
    expect(text).toEqual([expect.stringMatching(said)]);
  });

  it('a handshake that the server never answers, in time', async () => {
    const silent = createServer((socket) => void socket.on('error', () => undefined).resume());
    const { text } = await reached({ port: await listening(silent), withinMs: 100 });
    expect(text[1]).toMatch(/^failure route a: upstream TLS: .*no TLS handshake \(no answer within 100 ms\)/);
  });

  it('an answer beyond the time of all steps', async () => {
    const time = new AbortController();
    const silent = createServer(() => time.abort());
    const to: Destination = {
      protocol: 'https',
      host: '127.0.0.1',
      port: await listening(silent),
      tls: {},
      offers: [],
      withinMs: 60_000,
    };
    const { findings } = await reach(to, STEPS, about('route a'), examination({ signal: time.signal }));
    expect(lines(findings).join()).toContain('the time for all steps is up');
  });
});

describe('an egress proxy', () => {
  it('is the way where there is one', async () => {
    const port = await tlsServer(['api.example.com']);
    const proxy = await startConnectProxy({ host: '127.0.0.1', port });
    const tls = { caFile: await caFile() };
    const { text, isReached } = await reached({
      host: 'api.example.com',
      port: 443,
      tls,
      egressProxy: proxy.config,
    });
    expect(text[0]).toMatch(
      /^ok route a: upstream: https:\/\/api\.example\.com:443 reached in \d+ ms through the egress proxy 127/,
    );
    expect(isReached).toBe(true);
  });

  it('is named where it refuses', async () => {
    const proxy = await startConnectProxy(
      { host: '127.0.0.1', port: 1 },
      { answer: 'HTTP/1.1 407 No\r\n\r\n' },
    );
    const { text } = await reached({ host: 'api.example.com', port: 443, egressProxy: proxy.config });
    expect(text).toEqual([
      expect.stringMatching(
        /the egress proxy 127\.0\.0\.1:\d+ answered CONNECT with 407.* → look at egressProxy/,
      ),
    ]);
  });
});
