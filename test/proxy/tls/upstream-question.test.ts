import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import type { Protocol } from '../../../src/proxy/http/messages.ts';
import type {
  IncomingRequest,
  UpstreamStream,
  UpstreamStreams,
  UpstreamUser,
} from '../../../src/proxy/streams/contract.ts';
import { askUpstream } from '../../../src/proxy/tls/termination.ts';

/** Streams to an upstream, of which one is lent out, and what becomes of it. */
function ask(protocol: Protocol, ready: boolean) {
  const done: string[] = [];
  const known: (Protocol | undefined)[] = [];
  const stream = (name: string, spoken: Protocol) =>
    ({
      protocol: spoken,
      ready,
      release: () => done.push(`${name} given back`),
      cancel: () => done.push(`${name} abandoned`),
    }) as Partial<UpstreamStream> as UpstreamStream;
  let asked: IncomingRequest | undefined;
  let user: UpstreamUser | undefined;
  const streams = {
    acquire(request: IncomingRequest, asking: UpstreamUser) {
      asked = request;
      user = asking;
      return stream('first', protocol);
    },
  } as Partial<UpstreamStreams> as UpstreamStreams;
  const end = askUpstream(streams, (spoken) => known.push(spoken));
  return { done, known, end, asked, user: user as UpstreamUser, instead: stream('other', 'http1') };
}

const UNREACHABLE = new SidecarError('upstream_unreachable', 'nobody there');

describe('the protocol of an upstream', () => {
  it('is asked for with a request that any version of HTTP can carry', () => {
    expect(ask('h2', true).asked).toMatchObject({ method: 'OPTIONS', target: '*', targetForm: 'asterisk' });
  });

  it('is known at once if a connection is open, which is kept', () => {
    const { known, done, end } = ask('h2', true);
    expect([known, done]).toEqual([['h2'], ['first given back']]);
    end();
    expect(done).toHaveLength(1);
  });

  it('is known when a connection is established', () => {
    const { known, done, user } = ask('h2', false);
    expect([known, done]).toEqual([[], []]);
    user.onConnected();
    expect([known, done]).toEqual([['h2'], ['first given back']]);
  });

  it('is that of the stream which replaces the first one', () => {
    const { known, done, user, instead } = ask('h2', false);
    user.onConnected(instead);
    expect([known, done]).toEqual([['http1'], ['other given back']]);
  });

  it('stays unknown when no connection can be made', () => {
    const { known, done, user, end } = ask('h2', false);
    user.onError(UNREACHABLE, 'lost');
    expect(known).toEqual([undefined]);
    end();
    expect(done).toEqual([]);
  });

  it('is not reported to a cancelled question, and once to the others', () => {
    const ended = ask('h2', false);
    ended.end();
    expect(ended.done).toEqual(['first abandoned']);
    ended.user.onError(UNREACHABLE, 'lost');
    expect(ended.known).toEqual([]);

    const { known, user } = ask('h2', false);
    user.onConnected();
    user.onError(UNREACHABLE, 'lost');
    expect(known).toEqual(['h2']);
  });
});
