/** Apps whose names lead to the sidecar: it tells the host by where they connect, and finds the real one by DNS alone. */

import { Resolver } from 'node:dns';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CapturedHost } from '../../../src/config/config.ts';
import { dnsLookup, exceptFor } from '../../../src/platform/dns/dns-lookup.ts';
import type { CountedErrorCode } from '../../../src/platform/errors.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { networkWithLookup } from '../../../src/proxy/io/network.ts';
import { createAuthority, LeafCertificates } from '../../../src/proxy/tls/interception-ca.ts';
import { startDnsServer } from '../../support/dns-server.ts';
import { freePort } from '../../support/free-port.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { selfSigned } from '../../wire/certificate.ts';
import { FIRST } from '../../wire/fake-bearer.ts';
import { message } from '../../wire/messages.ts';
import { expectProblem } from '../../wire/problem.ts';
import { RawClient } from '../../wire/raw-client.ts';
import { startUpstream } from '../../wire/raw-upstream.ts';
import { forwardTo, type SidecarSettings, startSidecar } from '../../wire/sidecar.ts';
import { HOST, startTlsUpstream, tlsOf, type Upstream } from '../tls/intercepting.ts';

const MAX_HANDSHAKES = 256;

const HANDSHAKE_MS = 10_000;

const ADDRESS = '127.99.0.2';

interface Captured extends SidecarSettings {
  readonly entry?: Partial<CapturedHost>;
}

/** The upstream is at 127.0.0.1, as DNS says, and the sidecar in its place at the same port of another address. */
async function capturing(upstream: Upstream, { entry = {}, ...settings }: Captured = {}) {
  const dns = await startDnsServer({ [HOST]: { addresses: ['127.0.0.1'] } });
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${dns.port}`]);
  const clock = settings.clock ?? systemClock;
  const lookup = dnsLookup({ resolver, searchList: { domains: [], ndots: 1 }, clock, preferred: () => 4 });
  const authority = createAuthority({ names: [HOST], nowMs: Date.now() });
  const { allow } = forwardTo({ address: { host: HOST, port: 1 }, caFile: upstream.caFile });
  const [{ port: _, ...policy }] = allow as [(typeof allow)[0]];
  const names = new Set([HOST]);
  const host: CapturedHost = {
    ...policy,
    address: ADDRESS,
    ports: [upstream.port],
    clearPorts: [],
    upgradeToTls: true,
    ...entry,
  };
  const sidecar = await startSidecar({
    capture: { hosts: [host] },
    leaves: new LeafCertificates(authority, systemClock),
    network: networkWithLookup(exceptFor(names, lookup), names),
    ...settings,
  });
  const connected = async (): Promise<RawClient> => {
    const socket = connectTcp(upstream.port, ADDRESS);
    await once(socket, 'connect');
    onTestFinished(() => {
      socket.destroy();
    });
    return new RawClient(socket);
  };
  return {
    sidecar,
    dns,
    connected,
    async secured(options: ConnectionOptions = {}): Promise<RawClient> {
      const { port } = upstream;
      const socket = connectTls({ host: ADDRESS, port, ca: authority.root, servername: HOST, ...options });
      onTestFinished(() => {
        socket.destroy();
      });
      await once(socket, 'secureConnect');
      return new RawClient(socket);
    },
    counted: (error: CountedErrorCode, times = 1) =>
      until(async () => (await sidecar.metric('proxy_errors_total', { error })) === times),
  };
}

const get = (path: string, host: string) => message(`GET ${path} HTTP/1.1`, [`Host: ${host}`]);

describe('an app whose host resolves to the sidecar (captured host)', () => {
  it('gets the token over TLS, and its request goes to the host’s real address', async () => {
    const upstream = await startTlsUpstream();
    const { sidecar, dns, secured } = await capturing(upstream);
    const client = await secured();
    const host = `${HOST}:${upstream.port}`;
    for (const path of ['/first', '/second']) {
      expect((await client.send(get(path, host)).response()).body).toBe(`hello ${path}`);
    }
    expect(upstream.arrived).toEqual([
      { version: '1.1', path: '/first', host, authorization: FIRST },
      { version: '1.1', path: '/second', host, authorization: FIRST },
    ]);
    expect(dns.asked.toSorted()).toEqual([`A ${HOST}`, `AAAA ${HOST}`]);
    expect(await sidecar.metric('proxy_requests_total', { route: `capture:${HOST}` })).toBe(2);
    expect(await sidecar.metric('proxy_requests_in_flight')).toBe(0);
  });

  it('uses HTTP/2 if the host does', async () => {
    const upstream = await startTlsUpstream();
    const { secured } = await capturing(upstream);
    const client = await secured({ ALPNProtocols: ['h2', 'http/1.1'] });
    expect(tlsOf(client).alpnProtocol).toBe('h2');
    const session = connectHttp2(`https://${HOST}`, { createConnection: () => client.socket });
    onTestFinished(() => session.destroy());
    const stream = session.request({ ':path': '/', ':authority': `${HOST}:${upstream.port}` });
    const [answered] = await once(stream, 'response');
    expect(answered[':status']).toBe(200);
    expect(upstream.arrived.map(({ version, authorization }) => [version, authorization])).toEqual([
      ['2.0', FIRST],
    ]);
  });

  it('gets the token for http:// too, and the request leaves over TLS', async () => {
    const upstream = await startTlsUpstream();
    const { connected } = await capturing(upstream, { entry: { ports: [], clearPorts: [upstream.port] } });
    const client = await connected();
    const answer = await client.send(get('/clear', `${HOST}:${upstream.port}`)).response();
    expect(answer.body).toBe('hello /clear');
    expect(upstream.arrived.map(({ authorization }) => authorization)).toEqual([FIRST]);
  });

  it('sends its request in clear if that is allowed', async () => {
    const upstream = await startUpstream(undefined, 'plain');
    const { port } = upstream.address;
    const clear = { port, caFile: '/none', arrived: [], secured: () => 0 };
    const { connected, sidecar } = await capturing(clear, {
      entry: { ports: [await freePort()], clearPorts: [port], upgradeToTls: false, tls: {} },
    });
    (await connected()).send(get('/clear', `${HOST}:${port}`));
    const { head } = await upstream.request();
    expect(head.values('authorization')).toEqual([FIRST]);
    // Of that port alone: what comes over TLS leaves so.
    const warned = sidecar.logLines.filter((line) => line.includes('in clear text'));
    expect(warned.map((line) => JSON.parse(line).port)).toEqual([port]);
  });

  it('reaches the same host without SNI', async () => {
    const upstream = await startTlsUpstream();
    const { secured } = await capturing(upstream);
    const client = await secured({ servername: '', checkServerIdentity: () => undefined });
    expect((await client.send(get('/', `${HOST}:${upstream.port}`)).response()).status).toBe(200);
  });
});

describe('an app that requests another host on the address of a captured one', () => {
  it('gets no certificate if it names the other host by SNI', async () => {
    const upstream = await startTlsUpstream();
    const { secured, counted } = await capturing(upstream);
    await expect(secured({ servername: 'other.example.com' })).rejects.toThrow(/unrecognized name/);
    await counted('server_name_mismatch');
    expect(upstream.secured()).toBe(0);
  });

  it.each([
    ['by Host', 'other.example.com', '/'],
    ['by a name that resembles it', `x${HOST}`, '/'],
    ['by its address', ADDRESS, '/'],
    ['by another port', `${HOST}:1`, '/'],
    ['by an absolute target', undefined, 'https://other.example.com/'],
  ])('%s gets an error, over TLS and in clear, and nothing is sent', async (_, host, path) => {
    const upstream = await startTlsUpstream();
    const own = `${HOST}:${upstream.port}`;
    const { secured } = await capturing(upstream);
    const asked = get(path, host ?? (path === '/' ? own : 'other.example.com'));
    expectProblem(await (await secured()).send(asked).response(), 'misdirected_request');
    expect(upstream.arrived).toEqual([]);
  });

  it('gets an error in clear too', async () => {
    const upstream = await startTlsUpstream();
    const { connected } = await capturing(upstream, { entry: { ports: [], clearPorts: [upstream.port] } });
    const answer = await (await connected()).send(get('/', 'other.example.com')).response();
    expectProblem(answer, 'misdirected_request');
    const connect = message(`CONNECT ${HOST}:${upstream.port} HTTP/1.1`, [`Host: ${HOST}:${upstream.port}`]);
    expectProblem(await (await connected()).send(connect).response('CONNECT'), 'destination_not_allowed');
    expect(upstream.arrived).toEqual([]);
  });
});

describe('a captured host', () => {
  it('that DNS does not know is unreachable, not an alias of this machine', async () => {
    const upstream = await startTlsUpstream();
    const { secured, dns } = await capturing(upstream);
    dns.records.delete(HOST);
    const answer = await (await secured()).send(get('/', `${HOST}:${upstream.port}`)).response();
    expectProblem(answer, 'upstream_unreachable');
  });

  it('that does not prove its identity gets no token', async () => {
    const upstream = await startTlsUpstream('both', selfSigned('evil.example.net'));
    const { secured } = await capturing(upstream);
    const answer = await (await secured()).send(get('/', `${HOST}:${upstream.port}`)).response();
    expectProblem(answer, 'upstream_tls_error');
    expect(upstream.arrived).toEqual([]);
  });

  it.each([[['http/1.1']], [['h2', 'http/1.1']]])(
    'that resolves to the sidecar again is an error which does not blame the app: %s',
    async (ALPNProtocols) => {
      const upstream = await startTlsUpstream();
      const { secured, dns, sidecar } = await capturing(upstream);
      dns.records.set(HOST, { addresses: [ADDRESS] });
      const client = await secured({ ALPNProtocols });
      const answer = await client.send(get('/', `${HOST}:${upstream.port}`)).response();
      expectProblem(answer, 'loop_detected');
      expect(JSON.parse(answer.body).detail).toBe(
        `DNS sends this host to ${ADDRESS}:${upstream.port}, where the sidecar listens in the place of a host`,
      );
      const error = 'client_rejected_certificate';
      expect(await sidecar.metric('proxy_errors_total', { error })).toBe(0);
    },
  );

  it('that resolves to the sidecar again is an error in clear too', async () => {
    const upstream = await startTlsUpstream();
    const { connected, dns } = await capturing(upstream, {
      entry: { ports: [], clearPorts: [upstream.port], upgradeToTls: false, tls: {} },
    });
    dns.records.set(HOST, { addresses: [ADDRESS] });
    const answer = await (await connected()).send(get('/', `${HOST}:${upstream.port}`)).response();
    expectProblem(answer, 'loop_detected');
    expect(JSON.parse(answer.body).detail).toMatch(/^DNS sends this host to /);
  });
});

describe('TLS handshakes on a captured host', () => {
  it('time out, and their number is limited', async () => {
    const clock = new ManualClock();
    const upstream = await startTlsUpstream();
    const { connected, counted } = await capturing(upstream, { clock });
    const slow = await Promise.all(Array.from({ length: MAX_HANDSHAKES }, () => connected()));
    const one = await connected();
    await one.closed();
    await counted('overloaded');
    await clock.advance(HANDSHAKE_MS);
    await Promise.all(slow.map((client) => client.closed()));
    await counted('client_tls_error', MAX_HANDSHAKES);
  });

  it('with an app that does not trust the sidecar are counted and not bypassed', async () => {
    const upstream = await startTlsUpstream();
    const { secured, counted } = await capturing(upstream);
    await expect(secured({ ca: [] })).rejects.toThrow();
    await counted('client_rejected_certificate');
    expect(upstream.arrived).toEqual([]);
  });

  it('that are no TLS end the connection', async () => {
    const upstream = await startTlsUpstream();
    const { connected, counted } = await capturing(upstream);
    const client = await connected();
    client.send('GET / HTTP/1.1\r\n\r\n');
    await client.closed();
    await counted('client_tls_error');
  });
});

describe('draining captured hosts', () => {
  it('ends their connections like others and stops listening', async () => {
    const upstream = await startTlsUpstream();
    const { sidecar, secured, connected } = await capturing(upstream);
    const client = await secured();
    expect((await client.send(get('/', `${HOST}:${upstream.port}`)).response()).status).toBe(200);
    const unused = sidecar.proxy.whenUnused(10_000);
    const drained = sidecar.proxy.drain(10_000);
    expect(await client.closed()).toBe('end');
    await Promise.all([drained, unused]);
    await expect(connected()).rejects.toThrow('ECONNREFUSED');
  });
});

it('if an address for captured hosts is in use, the error names it and no listener stays open', async () => {
  const upstream = await startTlsUpstream();
  const starting = capturing(upstream, { entry: { address: '127.0.0.1' } });
  await expect(starting).rejects.toThrow(
    `capture of ${HOST}: cannot listen on 127.0.0.1:${upstream.port}: EADDRINUSE`,
  );
});
