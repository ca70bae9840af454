import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { RunningCommand } from '../../support/run-command.ts';
import { answerToken, ScriptedTokenEndpoint } from '../../support/scripted-token-endpoint.ts';
import { RunningCollector } from './collector.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';

/** It takes the first token until that is revoked, then the second, and keeps the traceparents that it is sent. */
async function startUpstream() {
  const traceparents: unknown[] = [];
  let taken = 'Bearer token-1';
  const server = createServer((request, response) => {
    traceparents.push(request.headers['traceparent']);
    request.resume().on('end', () => {
      response.statusCode = request.headers.authorization === taken ? 200 : 401;
      response.end('answer');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    traceparents,
    revoke() {
      taken = 'Bearer token-2';
    },
  };
}

describe.each(['http/protobuf', 'http/json'])(
  'a collector of OpenTelemetry takes spans by %s',
  (protocol) => {
    it('of the request, and of each time that it was sent, in the trace of the app', async () => {
      const collector = await RunningCollector.start();
      const provider = await ScriptedTokenEndpoint.start(answerToken());
      const upstream = await startUpstream();
      const secret = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
      const sidecar = new RunningCommand(['proxy'], {
        TOKEN_SIDECAR_TOKEN_URL: provider.url,
        TOKEN_SIDECAR_UPSTREAM: upstream.url,
        TOKEN_SIDECAR_CREDENTIALS_DIR: secret.directory,
        TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
        TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
        TOKEN_SIDECAR_ACCESS_LOG: 'all',
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
        OTEL_BSP_SCHEDULE_DELAY: '100',
      });
      const [, proxy] = await sidecar.output(/"proxy":"([^"]+)"/);
      await sidecar.output(/"msg":"ready"/);

      expect((await fetch(`http://${proxy}/before`)).status).toBe(200);
      upstream.revoke();
      const answer = await fetch(`http://${proxy}/orders?key=secret-query`, {
        method: 'POST',
        body: 'order',
        headers: { traceparent: `00-${TRACE}-b7ad6b7169203331-01`, cookie: 'secret-cookie' },
      });

      expect(answer.status).toBe(200);
      await collector.until(/url\.path: Str\(\/orders\)/);
      const { printed } = collector;
      const spans = printed.split(/^Span #\d+$/m).filter((span) => span.includes(TRACE));
      expect(spans).toHaveLength(3);
      for (const span of spans) expect(span).toMatch(new RegExp(`Trace ID\\s+: ${TRACE}`));
      const [first, again, server] = spans;
      expect(first).toMatch(/Kind\s+: Client/);
      expect(first).toContain('http.response.status_code: Int(401)');
      expect(first).not.toContain('http.request.resend_count');
      expect(again).toContain('http.request.resend_count: Int(1)');
      expect(again).toContain('http.response.status_code: Int(200)');
      expect(server).toMatch(/Kind\s+: Server/);
      expect(server).toMatch(/Parent ID\s+: b7ad6b7169203331/);
      expect(server).toContain('url.path: Str(/orders)');
      expect(printed).toContain('service.name: Str(token-sidecar)');
      // The upstream was told of the spans that the collector has.
      const ids = [first, again].map(
        (span) => /\bID\s+: ([0-9a-f]{16})$/m.exec(span?.replace(/Parent ID.*/, '') ?? '')?.[1],
      );
      expect(upstream.traceparents.slice(1)).toEqual(ids.map((id) => `00-${TRACE}-${id}-01`));
      await sidecar.output(
        new RegExp(`"traceId":"${TRACE}".*"path":"/orders"|"path":"/orders".*"traceId":"${TRACE}"`),
      );
      for (const hidden of ['secret-query', 'secret-cookie', 'S3CRET', 'token-1', 'token-2']) {
        expect(printed).not.toContain(hidden);
        expect(sidecar.stdout).not.toContain(hidden);
      }
    });
  },
);
