import { expect, it } from 'vitest';
import { redactedPath, type TargetForm } from '../../../src/proxy/http/syntax.ts';

it.each<[TargetForm, string, string]>([
  ['origin', '/a/b', '/a/b'],
  ['origin', '/a/b?key=secret', '/a/b'],
  ['origin', '/?secret', '/'],
  ['origin', '/a#secret?b', '/a'],
  ['origin', `/${'x'.repeat(2000)}`, `/${'x'.repeat(1023)}`],
  ['absolute', 'http://api.test:8080/a?key=secret', '/a'],
  ['absolute', 'http://api.test', ''],
  ['absolute', 'http://api.test?secret', ''],
  ['asterisk', '*', '*'],
  ['authority', 'api.test:443', ''],
])('the path logged for a target in %s form, %s, is %j', (targetForm, target, shown) => {
  expect(redactedPath({ target, targetForm })).toBe(shown);
});
