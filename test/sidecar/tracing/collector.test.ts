import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { resolveTracing, type TracingConfig } from '../../../src/config/resolve-tracing.ts';
import { openTracing } from '../../../src/sidecar/tracing/tracing.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const authority = createCertificateAuthority('authority of the collector');

/** Files in a directory that goes with the test. @returns their paths. */
async function written<Name extends string>(files: Readonly<Record<Name, string>>) {
  const directory = await mkdtemp(join(tmpdir(), 'collector-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const paths = Object.entries<string>(files).map(async ([name, text]) => {
    await writeFile(join(directory, name), text);
    return [name, join(directory, name)] as const;
  });
  return Object.fromEntries(await Promise.all(paths)) as Record<Name, string>;
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** A collector, over TLS one that asks its clients for certificates. Each request waits to be taken. */
async function startCollector(scheme: 'http' | 'https', answer: Answer, name = '127.0.0.1') {
  const requests = new Arrivals<IncomingMessage>();
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    requests.arrived(request.resume());
    answer(response, request);
  };
  const certificate = authority.issue('collector', name);
  const server =
    scheme === 'http'
      ? createServer(take)
      : createTlsServer(
          { ...certificate, ca: authority.cert, requestCert: true, rejectUnauthorized: false },
          take,
        );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

/** What comes one after another, and is waited for. */
class Arrivals<T> {
  readonly all: T[] = [];
  #next = Promise.withResolvers<void>();

  arrived(one: T): void {
    this.all.push(one);
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  async nth(index: number): Promise<T> {
    while (this.all.length <= index) await this.#next.promise;
    return this.all[index] as T;
  }
}

/** Traces by the environment alone, as a sidecar has them. */
function openTraced(env: Readonly<Record<string, string>>, lookup?: LookupFunction) {
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const config = resolveTracing({ OTEL_BSP_SCHEDULE_DELAY: '1', ...env }, [], []) as TracingConfig;
  const tracing = openTracing(config, log, { clock, lookup });
  onTestFinished(() => tracing.close(0));
  return {
    clock,
    close: tracing.close,
    /** Reasons of the lines of the log. */
    reasons: () => lines.map((line) => (JSON.parse(line) as { reason: string }).reason),
    /** A span that ends at once. */
    span: () =>
      tracing.grants.begin('shop', 'scheduled').end({ result: 'success', where: undefined, status: 200 }),
  };
}

it.each(['http/json', 'http/protobuf'])(
  'a collector is known by the authority that is named, and shown the certificate, by %s',
  async (protocol) => {
    const clients: unknown[] = [];
    const { url } = await startCollector('https', (response, { socket }) => {
      clients.push((socket as TLSSocket).getPeerCertificate().subject?.CN);
      response.end();
    });
    const { cert, key } = authority.issue('shop');
    const paths = await written({ 'ca.crt': authority.cert, 'tls.crt': cert, 'tls.key': key });
    const traced = openTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_CERTIFICATE: paths['ca.crt'],
      OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: paths['tls.crt'],
      OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: paths['tls.key'],
    });
    traced.span();
    await traced.close(10_000);
    expect(traced.reasons()).toEqual([]);
    expect(clients).toEqual(['shop']);
  },
);

it('a collector that another authority vouches for gets nothing, though NODE_TLS_REJECT_UNAUTHORIZED is 0', async () => {
  const { url, requests } = await startCollector('https', (response) => response.end());
  const paths = await written({ 'ca.crt': createCertificateAuthority('another').cert });
  const { span, reasons, close } = openTraced({
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_CERTIFICATE: paths['ca.crt'],
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
  });
  span();
  await close(10_000);
  expect(reasons()).toEqual([expect.stringContaining('certificate')]);
  expect(requests.all).toEqual([]);
});

it('certificates are those that the files have by the time of the first export, and of the first after one that failed', async () => {
  const shown: unknown[] = [];
  const { url, requests } = await startCollector('https', (response, { socket }) => {
    const { CN } = (socket as TLSSocket).getPeerCertificate().subject;
    shown.push(CN);
    response.writeHead(CN === 'ended' ? 403 : 200).end();
  });
  const ended = authority.issue('ended');
  const paths = await written({ 'ca.crt': authority.cert, 'tls.crt': ended.cert, 'tls.key': ended.key });
  const { span, reasons } = openTraced({
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_CERTIFICATE: paths['ca.crt'],
    OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: paths['tls.crt'],
    OTEL_EXPORTER_OTLP_CLIENT_KEY: paths['tls.key'],
  });
  span();
  await expect.poll(reasons).toEqual(['the collector answered 403 Forbidden']);
  const renewed = authority.issue('renewed');
  await writeFile(paths['tls.crt'], renewed.cert);
  await writeFile(paths['tls.key'], renewed.key);
  span();
  await requests.nth(1);
  expect(shown).toEqual(['ended', 'renewed']);
});

it('a file that has gone fails an export, and no other', async () => {
  const { url, requests } = await startCollector('https', (response) => response.end());
  const paths = await written({ 'ca.crt': authority.cert });
  const { span, reasons } = openTraced({
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_CERTIFICATE: paths['ca.crt'],
  });
  await rm(paths['ca.crt']);
  span();
  await expect.poll(reasons).toEqual([expect.stringContaining('ENOENT')]);
  await writeFile(paths['ca.crt'], authority.cert);
  span();
  await requests.nth(0);
});

it.each(['ca.crt', 'tls.crt', 'tls.key'] as const)(
  'an empty %s fails an export: without it everybody would be trusted whom the system trusts, or nobody shown',
  async (name) => {
    const before = getCACertificates('default');
    setDefaultCACertificates([authority.cert]);
    onTestFinished(() => setDefaultCACertificates(before));
    const { url, requests } = await startCollector('https', (response) => response.end());
    const { cert, key } = authority.issue('shop');
    const paths = await written({ 'ca.crt': authority.cert, 'tls.crt': cert, 'tls.key': key });
    const { span, reasons, close } = openTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_CERTIFICATE: paths['ca.crt'],
      OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: paths['tls.crt'],
      OTEL_EXPORTER_OTLP_CLIENT_KEY: paths['tls.key'],
    });
    // As where it is being written anew.
    await writeFile(paths[name], '');
    span();
    await close(10_000);
    expect(requests.all).toEqual([]);
    expect(reasons()).toEqual([`${paths[name]} holds no PEM`]);
  },
);

const TOO_LATE = 'the collector has not answered in whole within 10000 ms';

describe('an export ends after its time, with its connection, and the next one goes out, where the collector', () => {
  const answers: Readonly<Record<string, Answer>> = {
    'sends a part of its answer': (response) => response.writeHead(200).write('x'),
    'sends a part of one that asks for another try': (response) =>
      response.writeHead(503, { 'retry-after': '0' }).write('x'),
    'changes the protocol': (response) =>
      response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).flushHeaders(),
    'says nothing': () => undefined,
  };

  it.each(Object.keys(answers).flatMap((what) => [[what, 'http'] as const, [what, 'https'] as const]))(
    '%s, by %s',
    async (what, scheme) => {
      let slow = true;
      const { url, requests } = await startCollector(scheme, (response, request) => {
        if (slow) answers[what]?.(response, request);
        else response.end();
      });
      const paths = await written({ 'ca.crt': authority.cert });
      const { clock, span, reasons, close } = openTraced({
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_EXPORTER_OTLP_CERTIFICATE: paths['ca.crt'],
      });
      span();
      const { socket } = await requests.nth(0);
      const closed = once(socket, 'close');
      await clock.advance(9_999);
      expect(reasons()).toEqual([]);
      await clock.advance(1);
      await closed;
      expect(reasons()).toEqual([TOO_LATE]);

      slow = false;
      span();
      await requests.nth(1);
      await close(10_000);
      expect(requests.all).toHaveLength(2);
      expect(reasons()).toEqual([TOO_LATE]);
      expect(clock.pendingTimers).toBe(0);
    },
  );
});

it('an export ends after its time where the name of the collector is not found in it', async () => {
  const asked = Promise.withResolvers<void>();
  const { clock, span, reasons } = openTraced({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.test' }, () =>
    asked.resolve(),
  );
  span();
  await asked.promise;
  await clock.advance(10_000);
  expect(reasons()).toEqual([TOO_LATE]);
});

it('what is under way when the end has taken its time is told as lost, and its connection ended', async () => {
  const { url, requests } = await startCollector('http', () => undefined);
  const { span, reasons, close } = openTraced({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
  span();
  const { socket } = await requests.nth(0);
  const closed = once(socket, 'close');
  await close(0);
  await closed;
  expect(reasons()).toEqual(['the program has ended']);
});

it('a connection is used again by the next export', async () => {
  const { url, requests } = await startCollector('http', (response) => response.end());
  const { span } = openTraced({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
  for (const index of [0, 1, 2]) {
    span();
    await requests.nth(index);
  }
  expect(new Set(requests.all.map(({ socket }) => socket)).size).toBe(1);
});

describe('the log says why spans were not taken, in no words of the collector', () => {
  it.each([
    [401, 'the collector answered 401 Unauthorized'],
    [499, 'the collector answered 499'],
  ])('status %i', async (status, reason) => {
    const { url } = await startCollector('http', (response) =>
      response.writeHead(status, 'key sk-live-marker is unknown').end('sk-live-marker'),
    );
    const { span, reasons, close } = openTraced({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
    span();
    await close(10_000);
    expect(reasons()).toEqual([reason]);
  });

  it('a certificate for other names', async () => {
    const { url } = await startCollector('https', (response) => response.end(), 'sk-live-marker.test');
    const paths = await written({ 'ca.crt': authority.cert });
    const { span, reasons, close } = openTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_CERTIFICATE: paths['ca.crt'],
    });
    span();
    await close(10_000);
    expect(reasons()).toEqual(["the collector's certificate is for other names"]);
  });
});
