import { beforeEach, describe, expect, it } from 'vitest';
import { Registry } from '../../src/prometheus.ts';
import { createProxyMetrics, type ProxyMetrics } from '../../src/proxy/metrics.ts';

describe('proxy metrics', () => {
  let registry: Registry;
  let metrics: ProxyMetrics;

  beforeEach(() => {
    registry = new Registry();
    metrics = createProxyMetrics(registry);
  });

  async function lines(): Promise<string[]> {
    return (await registry.metrics()).split('\n');
  }

  it('count a request when it ends', async () => {
    const route = metrics.forRoute('api');
    route.started();
    expect(await lines()).toContain('token_sidecar_proxy_requests_in_flight{route="api"} 1');

    route.ended('GET', 200, 1500);

    const after = await lines();
    expect(after).toContain('token_sidecar_proxy_requests_in_flight{route="api"} 0');
    expect(after).toContain('token_sidecar_proxy_requests_total{route="api",method="GET",code="200"} 1');
    expect(after).toContain('token_sidecar_proxy_request_duration_seconds_sum{route="api"} 1.5');
    expect(after).toContain('token_sidecar_proxy_request_duration_seconds_bucket{le="2.5",route="api"} 1');
    expect(after).toContain('token_sidecar_proxy_request_duration_seconds_bucket{le="1",route="api"} 0');
  });

  it('put a duration into every bucket that it does not exceed', async () => {
    const route = metrics.forRoute('api');
    for (const durationMs of [0.4, 1, 60_000, 60_001]) {
      route.started();
      route.ended('GET', 200, durationMs);
    }
    const name = 'token_sidecar_proxy_request_duration_seconds';
    const after = await lines();
    expect(after).toContain(`# TYPE ${name} histogram`);
    for (const [bound, count] of [
      ['0.001', 2],
      ['0.0025', 2],
      ['30', 2],
      ['60', 3],
      ['+Inf', 4],
    ]) {
      expect(after).toContain(`${name}_bucket{le="${bound}",route="api"} ${count}`);
    }
    expect(after).toContain(`${name}_count{route="api"} 4`);
    const sum = after.find((line) => line.startsWith(`${name}_sum{route="api"}`));
    expect(Number(sum?.split(' ').at(-1))).toBeCloseTo(120.0024);
  });

  it('go on counting after they were read', async () => {
    const route = metrics.forRoute('api');
    const line = 'token_sidecar_proxy_requests_total{route="api",method="POST",code="503"}';
    route.refused('POST', 503, 1);
    expect(await lines()).toContain(`${line} 1`);
    expect(await lines()).toContain(`${line} 1`);
    route.refused('POST', 503, 1);
    expect(await lines()).toContain(`${line} 2`);
  });

  it('do not let clients invent label values', async () => {
    for (const method of ['get', 'PROPFIND', 'X"}']) metrics.forRoute('none').refused(method, 404, 1);
    expect(await lines()).toContain(
      'token_sidecar_proxy_requests_total{route="none",method="_OTHER",code="404"} 3',
    );
  });

  it.each(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE'])(
    'name the method %s',
    async (method) => {
      metrics.forRoute('api').refused(method, 204, 1);
      expect(await lines()).toContain(
        `token_sidecar_proxy_requests_total{route="api",method="${method}",code="204"} 1`,
      );
    },
  );

  it('tell the totals of each route', () => {
    const [api, other] = [metrics.forRoute('api'), metrics.forRoute('other')];
    for (let request = 0; request < 3; request++) api.started();
    api.ended('GET', 200, 1);
    api.refused('GET', 400, 1);
    api.error('bad_request');
    other.started();
    other.ended('GET', 200, 1);
    expect(Object.fromEntries(metrics.traffic())).toEqual({
      api: { total: 2, inFlight: 2, errors: 1 },
      other: { total: 1, inFlight: 0, errors: 0 },
    });
  });

  it('count errors, 401s and replays by route', async () => {
    const route = metrics.forRoute('api');
    route.error('upstream_timeout');
    route.upstreamUnauthorized();
    route.replayed('failure');
    route.replayed('success');
    route.replayed('success');
    const after = await lines();
    expect(after).toContain('token_sidecar_proxy_errors_total{route="api",error="upstream_timeout"} 1');
    expect(after).toContain('token_sidecar_proxy_upstream_unauthorized_total{route="api"} 1');
    expect(after).toContain('token_sidecar_proxy_replays_total{route="api",result="failure"} 1');
    expect(after).toContain('token_sidecar_proxy_replays_total{route="api",result="success"} 2');
    expect(after).toContain('token_sidecar_proxy_errors_total{route="api",error="internal"} 0');
    expect(after.join()).not.toContain('error="usage"');
  });

  it('stand at zero before anything happens', async () => {
    metrics.forRoute('api');
    const before = await lines();
    expect(before).toContain('token_sidecar_proxy_errors_total{route="api",error="token_unavailable"} 0');
    expect(before).toContain('token_sidecar_proxy_upstream_unauthorized_total{route="api"} 0');
    for (const result of ['success', 'failure']) {
      expect(before).toContain(`token_sidecar_proxy_replays_total{route="api",result="${result}"} 0`);
    }
  });

  it('give the same series to the same route', () => {
    expect(metrics.forRoute('api')).toBe(metrics.forRoute('api'));
  });
});
