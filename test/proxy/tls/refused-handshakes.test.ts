import { describe, expect, it } from 'vitest';
import type { CountedErrorCode } from '../../../src/platform/errors.ts';
import { VERDICT_MS } from '../../../src/proxy/tls/handshake.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { expectProblem } from '../../wire/problem.ts';
import { startUpstream } from '../../wire/raw-upstream.ts';
import { helloOf } from './hello.ts';
import { connectTo, HOST, type Interception, intercepting, startTlsUpstream } from './intercepting.ts';

const MAX_HANDSHAKES = 256;

const HANDSHAKE_MS = 10_000;

const counted = (interception: Interception, error: CountedErrorCode) =>
  until(async () => (await interception.sidecar.metric('proxy_errors_total', { error })) === 1);

/** The first octets of a ClientHello that never ends. */
const HALF_HELLO = Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);

describe('an app that does not trust the interception certificate', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'is counted, logged and not let through: %s',
    async (maxVersion) => {
      const upstream = await startTlsUpstream();
      const interception = await intercepting(upstream);
      const stranger = interception.secured({ ca: [], maxVersion });
      await expect(stranger).rejects.toThrow(/unable to|self.signed/);
      await counted(interception, 'client_rejected_certificate');
      // It is tried again as it was the first time: nothing learns from a rejection.
      await expect(interception.secured({ ca: [], maxVersion })).rejects.toThrow();
      expect(upstream.arrived).toEqual([]);
      expect(interception.sidecar.logLines.join('')).toContain('client_rejected_certificate');
    },
  );
});

it('a TLS alert is logged by name without OpenSSL’s source locations', async () => {
  const interception = await intercepting(await startTlsUpstream());
  const client = await interception.connected();
  client.send(await helloOf({ servername: HOST, maxVersion: 'TLSv1.2' }));
  await client.received.exactly(1);
  // Fatal: unknown_ca.
  client.send(Buffer.from([21, 3, 3, 0, 2, 2, 48]));
  await counted(interception, 'client_rejected_certificate');
  const [line = ''] = interception.sidecar.logLines.filter((one) => one.includes('client_rejected'));
  expect(JSON.parse(line).reason).toMatch(/ failed: [\w/]+ alert unknown ca; it has to trust ca\.crt /);
});

describe('an app that closes after the TLS handshake', () => {
  it('has not rejected the certificate if it sent a request or waited', async () => {
    const clock = new ManualClock();
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream, { clock });
    const asked = await interception.secured();
    await asked.send(`GET / HTTP/1.1\r\nHost: ${HOST}:${upstream.port}\r\n\r\n`).response();
    asked.destroy();
    const slow = await interception.secured();
    await clock.advance(VERDICT_MS);
    slow.destroy();
    await until(() => interception.sidecar.proxy.whenUnused(0).then(() => true));
    const error = 'client_rejected_certificate';
    expect(await interception.sidecar.metric('proxy_errors_total', { error })).toBe(0);
  });
});

describe('the SNI inside a CONNECT', () => {
  it('must equal the CONNECT’s host, or the connection ends', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream, { names: [HOST, 'other.example.com'] });
    await expect(interception.secured({ servername: 'other.example.com' })).rejects.toThrow(
      /unrecognized name/,
    );
    await counted(interception, 'server_name_mismatch');
    expect(upstream.secured()).toBe(0);
  });

  it('may be absent: the CONNECT’s host is used', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const checkServerIdentity = () => undefined;
    const client = await interception.secured({ servername: '', checkServerIdentity });
    const answer = await client.send(`GET / HTTP/1.1\r\nHost: ${HOST}:${upstream.port}\r\n\r\n`).response();
    expect(answer.status).toBe(200);
  });
});

describe('CONNECT for interception is refused', () => {
  it.each([
    ['a host that is not listed', 'bank.example.net'],
    ['a name that ends as the listed one', `not${HOST}`],
    ['a name below the listed one', `x.${HOST}`],
    ['a name with the listed one at its front', `${HOST}.evil.net`],
    ['the listed name with two final dots', `${HOST}..`],
  ])('to %s', async (_, host) => {
    const upstream = await startTlsUpstream();
    const { sidecar } = await intercepting(upstream);
    const answer = await sidecar.exchange(connectTo(`${host}:${upstream.port}`), 'CONNECT');
    expectProblem(answer, 'destination_not_allowed');
    expect(upstream.secured()).toBe(0);
  });

  it.each(['127.0.0.1', '[::1]'])('to the address %s, listed or not', async (host) => {
    const upstream = await startTlsUpstream();
    const { sidecar } = await intercepting(upstream, { entry: { host } });
    const answer = await sidecar.exchange(connectTo(`${host}:${upstream.port}`), 'CONNECT');
    expectProblem(answer, 'destination_not_allowed');
    expect(answer.body).toContain('is an address');
  });

  it('to port 80 of a listed host', async () => {
    const upstream = await startTlsUpstream();
    const { sidecar } = await intercepting(upstream, { entry: { port: undefined as never } });
    expectProblem(await sidecar.exchange(connectTo(`${HOST}:80`), 'CONNECT'), 'destination_not_allowed');
  });
});

describe('CONNECT to an unlisted host', () => {
  it('is passed through byte for byte without a token if other hosts are allowed', async () => {
    const listed = await startTlsUpstream();
    const other = await startUpstream(undefined, 'plain');
    const interception = await intercepting(listed, { proxy: { otherHosts: 'pass' } });
    const client = await interception.connected(`bank.example.net:${other.address.port}`);
    // No TLS: whatever it is, it is not looked at.
    client.send('GET / HTTP/1.1\r\nHost: bank\r\n\r\n');
    const arrived = await other.request();
    expect(arrived.head.values('authorization')).toEqual([]);
    expect(arrived.head.values('host')).toEqual(['bank']);
  });
});

describe('after CONNECT, something that is no TLS handshake', () => {
  it.each([
    ['plain HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['octets of no meaning', Buffer.alloc(64, 0xff)],
    ['an alert', Buffer.from([21, 3, 3, 0, 2, 2, 40])],
    [
      'a ClientHello that lies about its length',
      Buffer.concat([HALF_HELLO.subarray(0, 3), Buffer.from([0, 8, 1, 0, 0, 4, 3, 3, 0, 0])]),
    ],
    [
      'a ClientHello without end',
      Buffer.concat([HALF_HELLO.subarray(0, 3), Buffer.from([64, 0, 1, 255, 255, 255]), Buffer.alloc(64)]),
    ],
  ])('ends the connection: %s', async (_, octets) => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const client = await interception.connected();
    client.send(octets);
    await client.closed();
    await counted(interception, 'client_tls_error');
    expect(upstream.secured()).toBe(0);
  });

  it('ends the connection when the app leaves amid it', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const client = await interception.connected();
    client.send(HALF_HELLO);
    client.end();
    await client.closed();
    await counted(interception, 'client_tls_error');
  });
});

describe('slow TLS handshakes', () => {
  it('time out and are limited in number', async () => {
    const clock = new ManualClock();
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream, { clock });
    const { sidecar } = interception;
    const slow = await Promise.all(Array.from({ length: MAX_HANDSHAKES }, () => interception.connected()));
    for (const client of slow) client.send(HALF_HELLO);
    const answer = await sidecar.exchange(connectTo(`${HOST}:${upstream.port}`), 'CONNECT');
    expectProblem(answer, 'overloaded');

    await clock.advance(HANDSHAKE_MS);
    await Promise.all(slow.map((client) => client.closed()));
    expect(await sidecar.metric('proxy_errors_total', { error: 'client_tls_error' })).toBe(MAX_HANDSHAKES);
    // There is room again.
    await interception.connected();
  });

  it('also time out if the app stops after the server’s flight', async () => {
    const clock = new ManualClock();
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream, { clock });
    const client = await interception.connected();
    client.send(await helloOf({ servername: HOST }));
    // It is shown a certificate, and says nothing to that.
    await client.received.exactly(100);
    await clock.advance(HANDSHAKE_MS);
    await client.closed();
    await counted(interception, 'client_tls_error');
  });
});
