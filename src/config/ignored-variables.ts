import type { Logger } from '../platform/log/logger.ts';
import { quoted } from '../platform/log/shown-text.ts';
import type { IgnoredVariable } from './resolve-tracing.ts';

/** Tells the operator that the program goes on without them. */
export function tellIgnored(ignored: readonly IgnoredVariable[], log: Logger): void {
  for (const { key, value, expected } of ignored) {
    log.warn({ variable: key, value: quoted(value), expected }, 'a variable of OpenTelemetry is ignored');
  }
}
