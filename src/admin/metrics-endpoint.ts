import { Registry } from '../platform/prometheus.ts';
import type { AdminEndpoint } from './admin-server.ts';

/** By name and labels as in Prometheus text. */
type Exemplars = ReadonlyMap<string, string>;

/** Prometheus text, or OpenMetrics with exemplars if the scraper prefers it. */
export function metricsEndpoint(
  registry: Registry,
  exemplars: () => Exemplars = () => new Map(),
): AdminEndpoint {
  return {
    method: 'GET',
    variant: ({ accept }) => (prefersOpenMetrics(accept) ? 'OpenMetrics' : 'text'),
    async answer({ accept }) {
      const text = await registry.metrics();
      return prefersOpenMetrics(accept)
        ? {
            status: 200,
            contentType: Registry.OPENMETRICS_CONTENT_TYPE,
            body: toOpenMetrics(text, exemplars()),
          }
        : { status: 200, contentType: Registry.PROMETHEUS_CONTENT_TYPE, body: text };
    },
  };
}

/** The library's rendering renames registered metrics permanently, which breaks the next scrape for plain text. */
function toOpenMetrics(text: string, exemplars: Exemplars = new Map()): string {
  const counters = new Set([...text.matchAll(/^# TYPE (\S+)_total counter$/gm)].map(([, name]) => name));
  const lines = text.split('\n').flatMap((line) => {
    if (line === '') return [];
    const [, keyword, name, rest] = /^# (HELP|TYPE) (\S+)_total (.*)$/.exec(line) ?? [];
    if (counters.has(name)) return `# ${keyword} ${name} ${rest}`;
    return exemplars.size === 0 ? line : line + (exemplars.get(line.slice(0, line.lastIndexOf(' '))) ?? '');
  });
  return `${lines.join('\n')}\n# EOF\n`;
}

/** RFC 9110 §12.5.1 */
function prefersOpenMetrics(accept: string): boolean {
  const openMetrics = qualityOf('application/openmetrics-text', accept);
  return (
    openMetrics !== undefined && openMetrics > 0 && openMetrics >= (qualityOf('text/plain', accept) ?? 0)
  );
}

function qualityOf(mediaType: string, accept: string): number | undefined {
  for (const range of accept.split(',')) {
    const [type, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    if (type !== mediaType) continue;
    const quality = parameters.find((parameter) => parameter.startsWith('q='));
    return quality === undefined ? 1 : Number(quality.slice(2));
  }
  return undefined;
}
