import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { expect, it, onTestFinished, vi } from 'vitest';
import { resolveTracing, type TracingConfig } from '../../src/config/resolve-tracing.ts';
import { openTracing } from '../../src/tracing/open-tracing.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { captureLog } from '../support/log-capture.ts';

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

/** A collector over TLS that asks its clients for certificates. */
async function startTlsCollector(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const certificate = authority.issue('collector', '127.0.0.1');
  const server = createServer({ ...certificate, ca: authority.cert, requestCert: true }, answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Traces by the environment alone, as a sidecar has them. */
function openTraced(env: Readonly<Record<string, string>>) {
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const { log, lines } = captureLog();
  const tracing = openTracing(resolveTracing(env, [], []) as TracingConfig, log);
  return {
    lines,
    /** A span that ends at once. */
    span: () =>
      tracing.grants.begin('shop', 'scheduled').end({ result: 'success', where: undefined, status: 200 }),
    close: () => tracing.close(10_000),
  };
}

it.each(['http/json', 'http/protobuf'])(
  'a collector is known by the authority that is named, and shown the certificate, by %s',
  async (protocol) => {
    const clients: string[] = [];
    const url = await startTlsCollector((request, response) => {
      clients.push((request.socket as TLSSocket).getPeerCertificate().subject.CN as string);
      request.resume();
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
    await traced.close();
    expect(traced.lines).toEqual([]);
    expect(clients).toEqual(['shop']);
  },
);
