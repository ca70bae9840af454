import { describe, expect, it } from 'vitest';
import { chooseProtocol, mustAskUpstream } from '../../../src/proxy/tls/handshake.ts';

describe('what an app offers by ALPN', () => {
  it.each([
    ['both', ['h2', 'http/1.1'], true],
    ['both, the other way round', ['http/1.1', 'h2'], true],
    ['HTTP/2 alone', ['h2'], false],
    ['HTTP/1.1 alone', ['http/1.1'], false],
    ['something else', ['spdy/3'], false],
    ['nothing', [], false],
    ['no list', undefined, false],
  ])('%s: the upstream decides only where there is a choice', (_, offered, asks) => {
    expect(mustAskUpstream(offered)).toBe(asks);
  });

  it.each([
    [['h2', 'http/1.1'], 'h2', ['h2']],
    [['h2', 'http/1.1'], 'http1', ['http/1.1']],
    [['h2', 'http/1.1'], undefined, ['http/1.1']],
    [['h2'], 'http1', ['h2']],
    [['http/1.1'], 'h2', ['http/1.1']],
    [['spdy/3'], 'h2', ['http/1.1']],
    [[], 'h2', undefined],
    [undefined, 'h2', undefined],
  ] as const)('%j before an upstream that speaks %s may be answered %j', (offered, spoken, names) => {
    expect(chooseProtocol(offered, spoken)).toEqual(names);
  });
});
