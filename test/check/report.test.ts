import { describe, expect, it } from 'vitest';
import { about } from '../../src/check/check-context.ts';
import { formatTable } from '../../src/check/report.ts';
import { STEPS } from '../../src/check/steps.ts';
import { CODES } from '../../src/cli/explain/explanations.ts';

const [sidecar, shop, api, web] = [
  about(undefined),
  about('credential shop'),
  about('route api'),
  about('route web'),
];

describe('the table', () => {
  it('has a heading for each credential and route, and none for the sidecar', () => {
    const findings = [
      sidecar.ok('configuration', '1 credential, 1 route'),
      shop.ok('mounted_secret', '/var/run/secrets/shop'),
      api.ok('upstream_connection', 'reached'),
      about('proxy').ok('listener', '127.0.0.1:15080 is free'),
      shop.ok('token', 'granted'),
    ];
    expect(formatTable(findings, { colour: false })).toBe(
      `${[
        'ok    configuration    1 credential, 1 route',
        'ok    proxy: listener  127.0.0.1:15080 is free',
        '',
        'credential shop',
        'ok    mounted Secret   /var/run/secrets/shop',
        'ok    token            granted',
        '',
        'route api',
        'ok    upstream         reached',
        '',
        'All is well: 5 steps.',
      ].join('\n')}\n`,
    );
  });

  it('says the same of two routes once, and names the word to look it up by', () => {
    const refused = [
      'upstream_connection',
      'provider_unavailable',
      'ECONNREFUSED',
      'check host and port',
    ] as const;
    const findings = [api.failure(...refused), web.failure(...refused)];
    expect(formatTable(findings, { colour: false })).toBe(
      `${[
        'route api',
        'FAIL  upstream  ECONNREFUSED',
        '      → check host and port [upstream_connection]',
        '',
        'route web',
        'FAIL  upstream  as route api above',
        '',
        '2 failures in 2 steps. To read more about one: token-sidecar explain upstream_connection',
      ].join('\n')}\n`,
    );
  });
});

it('every step can be explained', () => {
  expect(Object.keys(STEPS).filter((step) => !CODES.includes(step))).toEqual([]);
});
