import { createLogger, type Logger } from '../../src/platform/log/logger.ts';
import type { Clock } from '../../src/platform/time/clock.ts';

/** A real logger whose lines are kept, and nothing printed. */
export function captureLog(clock?: Clock): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  return { log: createLogger('trace', { write: (line) => void lines.push(line) }, clock), lines };
}
