import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import { describe, expect, it } from 'vitest';
import { metricsEndpoint } from '../../src/admin/metrics-endpoint.ts';

function setUp() {
  const registry = new Registry();
  const registers = [registry];
  new Counter({ name: 'x_requests_total', help: 'Requests.', labelNames: ['code'], registers }).inc({
    code: '200',
  });
  new Gauge({ name: 'x_total', help: 'A gauge with an odd name.', registers }).set(1);
  new Histogram({ name: 'x_seconds', help: 'Time.', buckets: [1], registers }).observe(0.5);
  const endpoint = metricsEndpoint(registry);
  return (accept: string) => endpoint.answer({ accept, query: new URLSearchParams(), isLocal: true });
}

const OPEN_METRICS =
  'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1';

describe('/metrics', () => {
  it('is Prometheus text unless asked otherwise, also after OpenMetrics was', async () => {
    const scrape = setUp();
    await scrape(OPEN_METRICS);
    const { contentType, body } = await scrape('*/*');
    expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(body).toContain('# TYPE x_requests_total counter\nx_requests_total{code="200"} 1\n');
    expect(body).not.toContain('# EOF');
  });

  it('is OpenMetrics when that is preferred', async () => {
    const { contentType, body } = await setUp()(OPEN_METRICS);
    expect(contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    expect(body).toContain(
      '# HELP x_requests Requests.\n# TYPE x_requests counter\nx_requests_total{code="200"} 1\n',
    );
    expect(body).toContain('# TYPE x_total gauge\nx_total 1\n');
    expect(body).toMatch(/x_seconds_count 1\n# EOF\n$/);
    expect(body).not.toContain('\n\n');
  });

  it.each([
    ['', false],
    ['*/*', false],
    ['text/plain', false],
    ['application/openmetrics-text', true],
    ['Application/OpenMetrics-Text; version=1.0.0', true],
    ['text/plain;q=0.9,application/openmetrics-text;q=0.9', true],
    ['text/plain,application/openmetrics-text;q=0.9', false],
    ['application/openmetrics-text;q=0', false],
    ['application/openmetrics-text;q=much', false],
  ])('with Accept %j is OpenMetrics: %s', async (accept, preferred) => {
    const { contentType } = await setUp()(accept);
    expect(contentType?.startsWith('application/openmetrics-text')).toBe(preferred);
  });
});
