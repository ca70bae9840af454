import { expect, it } from 'vitest';
import { readOptions } from '../../mutation/options.ts';
import { roomOf, suitesFor } from '../../mutation/rooms.ts';
import { filesOf } from '../../mutation/scope.ts';

it('means all rooms unless told otherwise', () => {
  expect(readOptions([]).scope).toEqual({ kind: 'rooms', rooms: ['token', 'proxy', 'issuer', 'injector'] });
});

it.each([
  [['--room', 'kitchen'], '--room is "kitchen"; it must be one of token, proxy, issuer, injector'],
  [['--sample', '0'], '--sample is "0"; it must be a whole number from 1 to 100000'],
  [['--minutes', '1.5'], '--minutes is "1.5"'],
  [['--room', 'token', '--files', 'src/main.ts'], 'exclude each other'],
])('refuses %j', (args, message) => {
  expect(() => readOptions(args)).toThrow(message);
});

it('finds the sources of a room and the suites that can notice their mutants', () => {
  const { files } = filesOf({ kind: 'rooms', rooms: ['token'] });
  expect(files).toContain('src/token/schedule.ts');
  expect(files.every((file) => roomOf(file) === 'token')).toBe(true);
  expect(suitesFor(files)).toEqual(['test/token', 'test/platform/mounted']);
});

it('takes files and directories by name', () => {
  const { files } = filesOf({ kind: 'paths', paths: ['src/proxy/routing/routes.ts', 'src/proxy/http1'] });
  expect(files).toContain('src/proxy/routing/routes.ts');
  expect(files).toContain('src/proxy/http1/head-reader.ts');
});
