import { expect, it } from 'vitest';
import { serverNameOf } from '../../../src/platform/net/address.ts';

it.each([
  ['api.example.com', 'api.example.com'],
  ['api.example.com.', 'api.example.com'],
  ['localhost.', 'localhost'],
  ['192.0.2.1', ''],
  ['2001:db8::1', ''],
])('TLS asks for %s by %j', (host, name) => {
  expect(serverNameOf(host)).toBe(name);
});
