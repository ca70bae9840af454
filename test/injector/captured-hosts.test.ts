import { describe, expect, it } from 'vitest';
import { formats } from '../../src/config/values.ts';
import { captureSetting } from '../../src/injector/pod/hosts-mode.ts';

const hosts = (count: number, suffix = ''): string =>
  Array.from({ length: count }, (_, index) => `h${index}.example.com${suffix}`).join(',');

describe('as many hosts as an annotation takes', () => {
  it.each([
    ['at the usual ports', hosts(100)],
    ['at a port of their own', hosts(100, ':8443')],
    ['at three ports each', ['', ':8443', ':9443'].map((port) => hosts(33, port)).join(',')],
  ])('%s are read by the sidecar that captures them', (_, annotation) => {
    expect(formats.namedHosts.parse(annotation)).toBeDefined();
    expect(formats.addressedHosts.parse(captureSetting(annotation))).toBeDefined();
  });

  it('are bounded: not one host more, and not twice the entries', () => {
    const entries = (count: number, ports: number): string =>
      Array.from({ length: count * ports }, (_, at) => `h${at % count}.test:${1 + at}=127.0.0.2`).join(',');
    expect(formats.addressedHosts.parse(entries(101, 1))).toBeUndefined();
    expect(formats.addressedHosts.parse(entries(67, 3))).toBeUndefined();
    expect(formats.addressedHosts.parse(entries(100, 2))).toBeDefined();
  });
});

it.each(['1.2.3.4.5', '256.1.1.1', 'foo.1', '*.1', 'a.0x1f', '1'])('%s is no name of a host', (host) => {
  expect(formats.namedHosts.parse(host)).toBeUndefined();
  expect(formats.addressedHosts.parse(`${host}=127.0.0.2`)).toBeUndefined();
});
