import { describe, expect, it } from 'vitest';
import { whyRefused } from '../../src/admin/caller.ts';

const FIREFOX = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' };
const PAGE = { ...FIREFOX, 'accept-language': 'en-US,en;q=0.5' };

type Case = readonly [string, string, Record<string, string>];

describe('programs pass, whatever Host they send', () => {
  it.each<Case>([
    ['kubelet', 'GET', { host: '10.1.2.3:15081', 'user-agent': 'kube-probe/1.34' }],
    ['kubelet on IPv6', 'GET', { host: '[fd00::1]:15081', 'user-agent': 'kube-probe/1.34' }],
    ['Prometheus by pod address', 'GET', { host: '10.1.2.3:15081', 'user-agent': 'Prometheus/3.5.0' }],
    ['Prometheus by service name', 'GET', { host: 'injector.token-sidecar.svc:15081' }],
    ['Prometheus by a name of its own', 'GET', { host: 'sidecar.corp.example:15081' }],
    ['HTTP/1.0 without Host', 'GET', {}],
    [
      'the fetch of Node',
      'GET',
      { host: 'issuer.corp.example', 'accept-language': '*', 'sec-fetch-mode': 'cors', 'user-agent': 'node' },
    ],
    ['an app that ends its sidecar', 'POST', { host: 'localhost:15081' }],
    ['an app that ends its sidecar by address', 'POST', { host: '127.0.0.1:15081' }],
  ])('%s', (_, method, headers) => {
    expect(whyRefused(method, headers, 'programs')).toBeUndefined();
  });
});

describe('a person passes, through a port-forward or inside the cluster', () => {
  it.each<Case>([
    [
      'typed',
      'GET',
      { ...PAGE, host: 'localhost:15081', 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' },
    ],
    [
      "the page's own requests",
      'GET',
      {
        ...PAGE,
        host: 'localhost:15081',
        'sec-fetch-site': 'same-origin',
        referer: 'http://localhost:15081/',
      },
    ],
    ['an own POST', 'POST', { ...PAGE, host: '127.0.0.1:15081', origin: 'http://127.0.0.1:15081' }],
    [
      'a link from elsewhere',
      'GET',
      {
        ...PAGE,
        host: 'localhost:15081',
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
      },
    ],
    ['a short name', 'GET', { ...PAGE, host: 'sidecar:15081' }],
    ['a service name', 'GET', { ...PAGE, host: 'Injector.token-sidecar.svc.cluster.local.:15081' }],
  ])('%s', (_, method, headers) => {
    expect(whyRefused(method, headers, 'people')).toBeUndefined();
  });
});

describe('the page of another site is refused', () => {
  const AT = { ...PAGE, host: 'localhost:15081' };
  it.each<Case>([
    [
      'a fetch',
      'GET',
      { ...AT, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' },
    ],
    [
      'a neighbour on another port',
      'GET',
      { ...AT, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
    ],
    [
      'a frame',
      'GET',
      { ...AT, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ],
    [
      'a form',
      'POST',
      {
        ...AT,
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
        origin: 'https://evil.example',
      },
    ],
    ['a form without fetch metadata', 'POST', { ...AT, origin: 'https://evil.example' }],
    ['a sandboxed page', 'POST', { ...AT, origin: 'null' }],
    ['another port of the same host', 'POST', { ...AT, origin: 'http://localhost:8080' }],
  ])('%s', (_, method, headers) => {
    expect(whyRefused(method, headers, 'programs')).toMatch(/another site/);
  });
});

describe('a foreign name that resolves to this server (DNS rebinding) is refused', () => {
  const REBOUND = { host: 'rebind.evil.example:15081' };
  it.each<Case>([
    ['by language', 'GET', { ...REBOUND, 'accept-language': 'en' }],
    ['by agent', 'GET', { ...REBOUND, ...FIREFOX }],
    ['by referer', 'GET', { ...REBOUND, referer: 'http://rebind.evil.example:15081/' }],
    ['by origin, which is its own', 'GET', { ...REBOUND, origin: 'http://rebind.evil.example:15081' }],
    ['a name that looks local', 'GET', { ...PAGE, host: 'localhost.evil.example' }],
    ['a name that looks like an address', 'GET', { ...PAGE, host: '127.0.0.1.evil.example' }],
    ['a name that looks like a service', 'GET', { ...PAGE, host: 'a.svc.cluster.local.evil.example' }],
    ['no host that is understood', 'GET', { ...PAGE, host: 'a:b:c.evil' }],
  ])('%s', (_, method, headers) => {
    expect(whyRefused(method, headers, 'programs')).toMatch(/come here by localhost/);
  });

  it('also from a page that hides its origin, if the answer is for people', () => {
    expect(whyRefused('GET', REBOUND, 'people')).toMatch(/come here by localhost/);
  });

  it('for anything that changes state, whoever asks', () => {
    expect(whyRefused('POST', { host: 'sidecar' }, 'programs')).toMatch(/localhost or an IP address/);
    expect(whyRefused('POST', REBOUND, 'programs')).toMatch(/localhost or an IP address/);
    expect(whyRefused('POST', {}, 'programs')).toMatch(/localhost or an IP address/);
  });
});

describe('a name that the operator lists', () => {
  const hosts = new Set(['status.example.com']);
  const AT = { ...PAGE, host: 'Status.Example.com:443' };

  it('brings a person to the status page', () => {
    expect(whyRefused('GET', AT, 'people', hosts)).toBeUndefined();
    expect(whyRefused('GET', { ...AT, host: 'other.example.com' }, 'people', hosts)).toMatch(/come here by/);
    expect(whyRefused('GET', { ...AT, host: 'a.status.example.com' }, 'people', hosts)).toMatch(
      /come here by/,
    );
  });

  it('allows neither other sites nor changes', () => {
    expect(whyRefused('GET', { ...AT, 'sec-fetch-site': 'cross-site' }, 'people', hosts)).toMatch(
      /another site/,
    );
    expect(whyRefused('POST', AT, 'programs', hosts)).toMatch(/localhost or an IP address/);
  });
});

it('published keys and metadata may be read by everybody, by any name', () => {
  const headers = {
    ...PAGE,
    host: 'login.example.com',
    'sec-fetch-site': 'cross-site',
    origin: 'https://a.example',
  };
  expect(whyRefused('GET', headers, 'everybody')).toBeUndefined();
  expect(whyRefused('POST', headers, 'everybody')).toMatch(/localhost or an IP address/);
});
