import { describe, expect, it } from 'vitest';
import { Http2Sender } from '../../../../src/proxy/downstream/http2/sender.ts';
import type { ConnectionStream } from '../../../../src/proxy/downstream/http2/stream.ts';
import type { ServerStream } from '../../../../src/proxy/http2/server-connection.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { fakeOutlet } from './fake-outlet.ts';

const HEAD = [':status', '200'];
const TRAILERS = ['x-sum', '7'];
const PATIENCE_MS = 5_000;
const LARGE = 'L'.repeat(5_000);

/** A sender, what it sends, and how much it may. */
function start() {
  const clock = new ManualClock();
  const { allowed, outlet, sent, waiting, written } = fakeOutlet();
  const events = {
    onDrain: () => void written.push('caught up'),
    sent: () => void written.push('sent'),
    tooLate: () => void written.push('too late'),
  };
  const sender = new Http2Sender(outlet, {} as ServerStream<ConnectionStream>, clock, events);
  return { allowed, clock, sender, sent, waiting, data: (text: string) => sender.data(Buffer.from(text)) };
}

describe('an HTTP/2 answer', () => {
  it('without a body is one frame with the never-indexed names', () => {
    const { sender, sent, waiting } = start();
    sender.interim([':status', '103'], ['link']);
    sender.interim([':status', '103']);
    sender.head(HEAD, ['x-secret']);
    expect(sent()).toEqual(['fields :status,103 never indexed link', 'fields :status,103']);
    sender.end([], PATIENCE_MS);
    expect(sent()).toEqual(['fields :status,200 never indexed x-secret last', 'sent']);
    expect(waiting.size).toBe(0);
  });

  it('of small pieces shares frames, of which one ends the stream if the end is known', () => {
    const { data, sender, sent } = start();
    sender.head(HEAD);
    data('one ');
    data('two ');
    data('three');
    expect(sent()).toEqual([]);
    sender.end([], PATIENCE_MS);
    expect(sent()).toEqual(['fields :status,200', 'data one ', 'data two three last', 'sent']);
  });

  it('whose end is not known yet is sent so far and ended later by an empty frame', () => {
    const { data, sender, sent } = start();
    sender.head(HEAD);
    data('one');
    expect(sender.flush()).toBe(true);
    expect(sent()).toEqual(['fields :status,200', 'data one']);
    sender.end([], PATIENCE_MS);
    expect(sent()).toEqual(['data  last', 'sent']);
  });

  it('ends with its trailers, none of which is indexed', () => {
    const { data, sender, sent } = start();
    sender.head(HEAD);
    data('one');
    sender.end(TRAILERS, PATIENCE_MS);
    expect(sent()).toEqual([
      'fields :status,200',
      'data one',
      'fields x-sum,7 never indexed x-sum,7 last',
      'sent',
    ]);
  });

  it('of trailers only has its head before them', () => {
    const { sender, sent } = start();
    sender.head(HEAD);
    sender.end(TRAILERS, PATIENCE_MS);
    expect(sent()).toEqual(['fields :status,200', 'fields x-sum,7 never indexed x-sum,7 last', 'sent']);
  });

  it('that has not begun sends nothing', () => {
    const { data, sender, sent } = start();
    expect([sender.step(), sender.flush(), sent()]).toEqual([false, true, []]);
    data('early');
    expect([sender.step(), sent()]).toEqual([false, []]);
  });
});

describe('a large piece of an answer', () => {
  it('is sent at once without a flush', () => {
    const { data, sender, sent } = start();
    sender.head(HEAD);
    data(LARGE);
    expect(sent()).toEqual(['fields :status,200', `data ${LARGE}`]);
    data('a'.repeat(4096));
    expect(sent()).toEqual([]);
    sender.end([], PATIENCE_MS);
    expect(sent()).toEqual([`data ${'a'.repeat(4096)} last`, 'sent']);
  });

  it('is sent as far as the window allows, and the rest when it opens', () => {
    const { allowed, data, sender, sent, waiting } = start();
    allowed.window = 1000;
    sender.head(HEAD);
    data(`${LARGE}rest`);
    expect(sent()).toEqual(['fields :status,200', `data ${LARGE.slice(0, 1000)}`]);
    expect(sender.flush()).toBe(false);
    expect(waiting.size).toBe(1);
    allowed.window = 4004;
    sender.goOn();
    expect(sent()).toEqual([`data ${LARGE.slice(0, 4000)}rest`, 'caught up']);
    expect(waiting.size).toBe(0);
  });

  it('is sent after what already waits', () => {
    const { data, sender, sent } = start();
    sender.head(HEAD);
    data('first ');
    data(LARGE);
    expect(sent()).toEqual([]);
    sender.flush();
    expect(sent().join('').replaceAll('data ', '')).toBe(`fields :status,200first ${LARGE}`);
  });

  it('waits whole when the socket is full', () => {
    const { allowed, data, sender, sent } = start();
    allowed.room = false;
    sender.head(HEAD);
    data(LARGE);
    expect(sent()).toEqual(['fields :status,200']);
    expect(sender.flush()).toBe(false);
    allowed.room = true;
    expect(sender.step()).toBe(true);
    expect(sender.step()).toBe(false);
    sender.settle();
    expect(sent()).toEqual([`data ${LARGE}`, 'caught up']);
  });
});

describe('an app that keeps an answer waiting', () => {
  it('is waited for until the timeout and no longer', async () => {
    const { allowed, clock, data, sender, sent } = start();
    allowed.window = 0;
    sender.head(HEAD);
    data('one');
    sender.end([], PATIENCE_MS);
    expect(sent()).toEqual(['fields :status,200']);
    await clock.advance(PATIENCE_MS - 1);
    expect(sent()).toEqual([]);
    await clock.advance(1);
    expect(sent()).toEqual(['too late']);
  });

  it('and opens the window in time is not timed out', async () => {
    const { allowed, clock, data, sender, sent, waiting } = start();
    allowed.window = 0;
    sender.head(HEAD);
    data('one');
    sender.end([], PATIENCE_MS);
    allowed.window = 3;
    sender.goOn();
    expect(sent()).toEqual(['fields :status,200', 'data one last', 'sent']);
    expect([waiting.size, clock.pendingTimers]).toEqual([0, 0]);
    await clock.advance(PATIENCE_MS);
    expect(sent()).toEqual([]);
  });

  it('gets one frame at a time as it opens the window', () => {
    const { allowed, data, sender, sent } = start();
    allowed.window = 0;
    sender.head(HEAD);
    data('one');
    sender.end(TRAILERS, PATIENCE_MS);
    allowed.window = 3;
    expect([sender.step(), sender.step(), sender.step()]).toEqual([true, true, false]);
    expect(sent()).toEqual([
      'fields :status,200',
      'data one',
      'fields x-sum,7 never indexed x-sum,7 last',
      'sent',
    ]);
  });

  it('is not timed when nothing was asked for, something waits, or the socket is full', () => {
    const { allowed, data, sender, sent } = start();
    sender.head(HEAD);
    data('one');
    sender.goOn();
    sender.settle();
    expect(sent()).toEqual([]);
    allowed.window = 1;
    expect(sender.flush()).toBe(false);
    sender.settle();
    expect(sent()).toEqual(['fields :status,200', 'data o']);
    allowed.window = 2;
    sender.step();
    allowed.room = false;
    sender.settle();
    expect(sent()).toEqual(['data ne']);
    allowed.room = true;
    sender.settle();
    sender.settle();
    expect(sent()).toEqual(['caught up']);
  });

  it('is also timed when everything is sent and the socket is full', () => {
    const { allowed, sender, sent, data } = start();
    sender.head(HEAD);
    data('one');
    sender.flush();
    allowed.room = false;
    expect(sender.flush()).toBe(false);
    allowed.room = true;
    sender.settle();
    expect(sent()).toEqual(['fields :status,200', 'data one', 'caught up']);
  });
});

it('nothing is sent of an ended answer, and nothing waits for it', async () => {
  const { allowed, clock, data, sender, sent, waiting } = start();
  allowed.window = 0;
  sender.head(HEAD);
  data('one');
  sender.end([], PATIENCE_MS);
  sent();
  sender.dispose();
  expect([waiting.size, clock.pendingTimers]).toEqual([0, 0]);
  allowed.window = 1e9;
  data(LARGE);
  data('more');
  allowed.room = false;
  expect([sender.step(), sender.flush(), waiting.size]).toEqual([false, true, 0]);
  allowed.room = true;
  sender.goOn();
  sender.settle();
  await clock.advance(PATIENCE_MS);
  expect(sent()).toEqual([]);
});
