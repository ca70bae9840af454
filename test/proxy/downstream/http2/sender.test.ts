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

describe('an answer', () => {
  it('without a body is one frame, with the names that are put in no table', () => {
    const { sender, sent, waiting } = start();
    sender.interim([':status', '103'], ['link']);
    sender.interim([':status', '103']);
    sender.head(HEAD, ['x-secret']);
    expect(sent()).toEqual(['fields :status,103 never indexed link', 'fields :status,103']);
    sender.end([], PATIENCE_MS);
    expect(sent()).toEqual(['fields :status,200 never indexed x-secret last', 'sent']);
    expect(waiting.size).toBe(0);
  });

  it('of small pieces has them share frames, of which one is the last if all is said', () => {
    const { data, sender, sent } = start();
    sender.head(HEAD);
    data('one ');
    data('two ');
    data('three');
    expect(sent()).toEqual([]);
    sender.end([], PATIENCE_MS);
    expect(sent()).toEqual(['fields :status,200', 'data one ', 'data two three last', 'sent']);
  });

  it('whose end is not said yet is sent as far as it goes, and ended by an empty frame', () => {
    const { data, sender, sent } = start();
    sender.head(HEAD);
    data('one');
    expect(sender.flush()).toBe(true);
    expect(sent()).toEqual(['fields :status,200', 'data one']);
    sender.end([], PATIENCE_MS);
    expect(sent()).toEqual(['data  last', 'sent']);
  });

  it('ends with its trailers, none of which is put in a table', () => {
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

  it('of trailers alone has its head before them', () => {
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

describe('a piece that is not small', () => {
  it('goes at once, without a flush', () => {
    const { data, sender, sent } = start();
    sender.head(HEAD);
    data(LARGE);
    expect(sent()).toEqual(['fields :status,200', `data ${LARGE}`]);
    data('a'.repeat(4096));
    expect(sent()).toEqual([]);
    sender.end([], PATIENCE_MS);
    expect(sent()).toEqual([`data ${'a'.repeat(4096)} last`, 'sent']);
  });

  it('goes as far as it may, and the rest when there is room', () => {
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

  it('goes behind what waits', () => {
    const { data, sender, sent } = start();
    sender.head(HEAD);
    data('first ');
    data(LARGE);
    expect(sent()).toEqual([]);
    sender.flush();
    expect(sent().join('').replaceAll('data ', '')).toBe(`fields :status,200first ${LARGE}`);
  });

  it('waits whole where the socket takes no more', () => {
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

describe('an app that keeps its answer waiting', () => {
  it('is waited for as long as it may take, and no longer', async () => {
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

  it('and makes room in time is not too late', async () => {
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

  it('gets a frame at a time as it makes room, until there is none', () => {
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

  it('is told of no room where nobody asked, nor while something waits, nor while the socket is full', () => {
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

  it('is waited for, too, where all is sent and the socket is full', () => {
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

it('nothing is sent of an answer that is over, and nobody waits for it', async () => {
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
