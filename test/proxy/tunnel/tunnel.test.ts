import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { CoalescingWriter } from '../../../src/proxy/io/coalescing-writer.ts';
import type { TakeBytes } from '../../../src/proxy/io/sockets.ts';
import { runTunnel, SocketSide, type TunnelEnd } from '../../../src/proxy/tunnel/tunnel.ts';
import { ManualClock, settle } from '../../support/manual-clock.ts';
import { Sink } from '../transaction/ported-transaction.ts';

const IDLE_MS = 5000;

/** One end, of which all that happens is written down. */
class End implements TunnelEnd {
  readonly sink = new Sink({ decodeStrings: false, allowHalfOpen: true });
  readonly socket = this.sink as unknown as Socket;
  readonly writer = new CoalescingWriter(this.socket);
  readonly #early: Buffer | undefined;
  ending: 'reset' | 'soon' | undefined;
  bring: TakeBytes = () => {};

  constructor(early?: string) {
    this.#early = early === undefined ? undefined : Buffer.from(early);
    Object.assign(this.sink, {
      resetAndDestroy: () => {
        this.ending ??= 'reset';
        this.sink.destroy();
      },
      destroySoon: () => {
        this.ending ??= 'soon';
        this.sink.destroy();
      },
    });
  }

  takeOver(take: TakeBytes): Buffer | undefined {
    this.bring = take;
    return this.#early;
  }

  say(text: string): void {
    this.bring(Buffer.from(text));
  }

  async end(): Promise<void> {
    this.sink.push(null);
    await settle();
  }
}

function tunnel(app = new End(), upstream = new End()) {
  const clock = new ManualClock();
  app.socket.write(HEAD);
  runTunnel(new SocketSide(app), new SocketSide(upstream), { clock, idleMs: IDLE_MS });
  return { app, upstream, clock };
}

const HEAD = 'HTTP/1.1 101 Switching\r\n\r\n';

it('a tunnel sends the answer, then the bytes that came with the heads, then all that follow', () => {
  const { app, upstream } = tunnel(new End('from app '), new End('from upstream '));
  app.say('more');
  upstream.say('and more');
  expect(app.sink.text).toBe(`${HEAD}from upstream and more`);
  expect(upstream.sink.text).toBe('from app more');
});

describe('each direction of a tunnel', () => {
  it('ends independently', async () => {
    const { app, upstream } = tunnel();
    await app.end();
    expect([upstream.sink.writableEnded, app.sink.writableEnded]).toEqual([true, false]);
    upstream.say('still');
    expect(app.sink.text).toBe(`${HEAD}still`);
    await upstream.end();
    expect(app.sink.writableEnded).toBe(true);
  });

  it('that had ended before the tunnel opened is ended', async () => {
    const [early, other] = [new End(), new End()];
    early.sink.resume();
    await early.end();
    const { upstream } = tunnel(early);
    expect(upstream.sink.writableEnded).toBe(true);
    expect(early.sink.writableEnded).toBe(false);
    other.sink.resume();
    await other.end();
    const { app } = tunnel(new End(), other);
    expect(app.sink.writableEnded).toBe(true);
    expect(other.sink.writableEnded).toBe(false);
  });

  it.each([
    ['app', 'upstream'],
    ['upstream', 'app'],
  ] as const)('does not let the %s send faster than the %s reads', async (slow, fast) => {
    const ends = tunnel();
    ends[slow].sink.stuck = true;
    ends[fast].say('x'.repeat(100_000));
    expect(ends[fast].sink.isPaused()).toBe(true);
    expect(ends[slow].sink.isPaused()).toBe(false);
    ends[slow].sink.emit('drain');
    expect(ends[fast].sink.isPaused()).toBe(false);
  });
});

describe('a tunnel in which nothing moves', () => {
  it('is cut after the idle timeout', async () => {
    const { app, upstream, clock } = tunnel();
    await clock.advance(IDLE_MS - 1);
    expect(app.sink.destroyed).toBe(false);
    await clock.advance(1);
    await settle();
    expect([app.sink.destroyed, upstream.sink.destroyed]).toEqual([true, true]);
  });

  it.each<[string, (ends: ReturnType<typeof tunnel>) => void]>([
    ['from the app', ({ app }) => app.say('x')],
    ['from the upstream', ({ upstream }) => upstream.say('x')],
    ['to the app', ({ app }) => void app.sink.emit('drain')],
    ['to the upstream', ({ upstream }) => void upstream.sink.emit('drain')],
  ])('is kept while bytes go %s', async (_, move) => {
    const ends = tunnel();
    for (let times = 0; times < 3; times++) {
      await ends.clock.advance(IDLE_MS - 1);
      move(ends);
    }
    expect(ends.app.sink.destroyed).toBe(false);
    await ends.clock.advance(IDLE_MS);
    expect(ends.app.sink.destroyed).toBe(true);
  });
});

describe('when one side of a tunnel closes', () => {
  it('after the app closed normally, the upstream is closed and no timer is left', async () => {
    const { app, upstream, clock } = tunnel();
    app.sink.destroy();
    await settle();
    expect([upstream.sink.destroyed, upstream.ending]).toEqual([true, undefined]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('after the app ended and closed, an upstream that reads nothing is reset at the idle timeout', async () => {
    const { app, upstream, clock } = tunnel();
    // It is closed once all has been written, which never is.
    Object.assign(upstream.sink, { stuck: true, destroySoon: () => {} });
    await upstream.end();
    app.say('rest');
    await app.end();
    expect([app.sink.destroyed, upstream.sink.destroyed]).toEqual([true, false]);
    await clock.advance(IDLE_MS);
    await settle();
    expect([upstream.sink.destroyed, upstream.ending]).toEqual([true, 'reset']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('after the app failed, the upstream is reset', async () => {
    const { app, upstream } = tunnel();
    app.sink.on('error', () => {});
    app.sink.destroy(new Error('reset'));
    await settle();
    expect(upstream.ending).toBe('reset');
  });

  it('after the upstream ended, the app is closed once all has been written', async () => {
    const { app, upstream } = tunnel();
    await upstream.end();
    upstream.sink.destroy();
    await settle();
    expect(app.ending).toBe('soon');
  });

  it('after the upstream closed without an end, the app is reset', async () => {
    const { app, upstream } = tunnel();
    upstream.sink.destroy();
    await settle();
    expect(app.ending).toBe('reset');
  });

  it('after the upstream failed, the app is reset although it had ended', async () => {
    const { app, upstream } = tunnel();
    upstream.sink.on('error', () => {});
    await upstream.end();
    upstream.sink.destroy(new Error('reset'));
    await settle();
    expect(app.ending).toBe('reset');
  });
});
