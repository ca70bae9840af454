import { expect, it } from 'vitest';
import { goesThrough } from '../../../src/token/egress/egress-tunnel.ts';

const noProxy = ['.svc', 'direct.example.com', '10.0.0.0/8', '192.0.2.7', 'fd00::/8'];

it.each([
  'api.example.com',
  'svc',
  'notdirect.example.com',
  'a.direct.example.com',
  '11.0.0.1',
  '192.0.2.8',
  '2001:db8::1',
])('%s is reached through the proxy', (host) => {
  expect(goesThrough({ noProxy }, host)).toBe(true);
});

it.each([
  'vault.infra.svc',
  'VAULT.svc.',
  'Direct.example.com',
  '10.255.0.1',
  '192.0.2.7',
  'fd12::1',
  'localhost',
  'a.localhost',
  '127.0.0.2',
  '::1',
])('%s is reached directly', (host) => {
  expect(goesThrough({ noProxy }, host)).toBe(false);
});
