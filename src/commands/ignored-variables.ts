import type { IgnoredVariable } from '../config/resolve-tracing.ts';
import { quoted } from '../config/shown-text.ts';
import type { Logger } from '../log/logger.ts';

/** Tells the operator that the program goes on without them. */
export function tellIgnored(ignored: readonly IgnoredVariable[], log: Logger): void {
  for (const { key, value, expected } of ignored) {
    log.warn({ variable: key, value: quoted(value), expected }, 'a variable of OpenTelemetry is ignored');
  }
}
