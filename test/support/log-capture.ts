import { createLogger, type Logger } from '../../src/platform/log/logger.ts';

/** A real logger whose lines are kept, and nothing printed. */
export function captureLog(): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  return { log: createLogger('trace', { write: (line) => void lines.push(line) }), lines };
}
