import { expect, it } from 'vitest';
import { createLogger, setLogLevel } from '../../../src/platform/log/logger.ts';

it('a level that is set is that of a logger and of all that were made of it, then and later', () => {
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line).msg) });
  const child = log.child({ credential: 'crm' });
  const grandchild = child.child({ route: 'api' });
  setLogLevel(log, 'debug');
  for (const logger of [log, child, grandchild, log.child({})]) logger.debug('seen');
  expect(lines).toHaveLength(4);
  setLogLevel(log, 'error');
  for (const logger of [log, child, grandchild, log.child({})]) logger.warn('unseen');
  expect(lines).toHaveLength(4);
});
