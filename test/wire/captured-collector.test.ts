import { createServer } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { resolveTracing, type TracingConfig } from '../../src/config/resolve-tracing.ts';
import { exceptFor } from '../../src/platform/dns/dns-lookup.ts';
import { openTracing } from '../../src/sidecar/tracing/tracing.ts';
import { captureLog } from '../support/log-capture.ts';
import { get, ok } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const COLLECTOR = 'collector.captured.test';

/** What takes spans, at the address that DNS alone knows. */
async function startCollector() {
  const received: string[] = [];
  const server = createServer((request, response) => {
    received.push(`${request.headers.host} ${request.url}`);
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { received, port: (server.address() as AddressInfo).port };
}

/** What DNS says of any name. */
const byDns: LookupFunction = (_, { all }, callback) => {
  const [address, family] = ['127.0.0.1', 4] as const;
  if (all === true) callback(null, [{ address, family }]);
  else callback(null, address, family);
};

it.each(['http/json', 'http/protobuf'])(
  'spans reach a collector whose host name is captured, over %s',
  async (protocol) => {
    const { received, port } = await startCollector();
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${COLLECTOR}:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    };
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    const { log, lines } = captureLog();
    const config = resolveTracing(env, [], []) as TracingConfig;
    // The name is in nobody's DNS: found by the system, it would not be.
    const lookup = exceptFor(new Set([COLLECTOR]), byDns);
    const { tracer, close } = openTracing(config, log, { lookup });
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream, tracer });
    await sidecar.exchange(get('/'));
    await sidecar.idle();
    await close(10_000);
    expect(lines).toEqual([]);
    expect(received).toEqual([`${COLLECTOR}:${port} /v1/traces`]);
  },
);
