import { expect, it } from 'vitest';
import { createLogger, setLogLevel } from '../../src/log/logger.ts';

it('is changed for a logger and all that were derived from it', () => {
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(line) });
  const child = log.child({ credential: 'crm' });
  const grandchild = child.child({ part: 'one' });
  const told = () => {
    for (const each of [log, child, grandchild]) each.debug('told');
    return lines.splice(0).length;
  };
  expect(told()).toBe(0);
  setLogLevel(log, 'debug');
  expect(told()).toBe(3);
  expect(log.child({}).level).toBe('debug');
  setLogLevel(log, 'warn');
  expect(told()).toBe(0);
});
