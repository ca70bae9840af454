import { expect, it } from 'vitest';
import { nameOf } from '../src/config/address-conflicts.ts';

it.each([
  ['nginx: master process /usr/sbin/nginx', 'process 12'],
  ['/usr/sbin/haproxy -f /etc/haproxy.cfg', 'haproxy (process 12)'],
  [
    '/opt/node/bin/node --max-semi-space-size=1 /app/dist/token-sidecar.js proxy',
    'token-sidecar (process 12)',
  ],
  ['node /usr/bin/token-sidecar', 'token-sidecar (process 12)'],
  ['node server.js /var/lib/token-sidecar', 'node (process 12)'],
  ['node /srv/not-token-sidecar.js', 'node (process 12)'],
  ['', 'process 12'],
])('whoever runs %j is called %s', (commandLine, name) => {
  expect(nameOf({ pid: 12, commandLine })).toBe(name);
});
