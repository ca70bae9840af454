import { describe, expect, it } from 'vitest';
import { chooseProtocol, mustAskUpstream } from '../../../src/proxy/tls/handshake.ts';

describe('the protocol chosen for an app’s ALPN offer', () => {
  it.each([
    ['both', ['h2', 'http/1.1'], true],
    ['both, the other way round', ['http/1.1', 'h2'], true],
    ['HTTP/2 alone', ['h2'], false],
    ['HTTP/1.1 alone', ['http/1.1'], false],
    ['something else', ['spdy/3'], false],
    ['nothing', [], false],
    ['no list', undefined, false],
  ])('%s depends on the upstream only if there is a choice', (_, offered, asks) => {
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
  ] as const)('%j before an upstream that speaks %s may be %j', (offered, spoken, names) => {
    expect(chooseProtocol(offered, spoken)).toEqual(names);
  });
});
