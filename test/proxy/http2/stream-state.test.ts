import { describe, expect, test } from 'vitest';
import {
  ENDED,
  ENDED_BY_LOCAL,
  ENDED_BY_REMOTE,
  FORGOTTEN,
  OPEN,
  RESET_SENT,
  received,
  Streams,
  sent,
} from '../../../src/proxy/http2/streams.ts';

type StreamState = Parameters<typeof received>[0];

function next(verdict: ReturnType<typeof received>): StreamState {
  if (verdict.kind !== 'next') throw new Error(`no next state: ${verdict.kind}`);
  return verdict.state;
}

/** As the code has them: it compares states by identity. */
const IDLE = new Streams('client').stateOf(1);
const RESET_RECEIVED = next(received(OPEN, 'reset', false));
const STATES = { IDLE, OPEN, ENDED_BY_REMOTE, ENDED_BY_LOCAL, ENDED, RESET_SENT, RESET_RECEIVED, FORGOTTEN };
type Name = keyof typeof STATES;

function nameOf(state: StreamState | undefined): string {
  return Object.entries(STATES).find(([, other]) => other === state)?.[0] ?? 'forbidden';
}

/** One row a state: headers, headers that end, data, data that end, reset, window update. */
const FRAMES: readonly (readonly [frame: Parameters<typeof received>[1], endStream: boolean])[] = [
  ['headers', false],
  ['headers', true],
  ['data', false],
  ['data', true],
  ['reset', false],
  ['window_update', false],
];

describe('received frames by stream state (RFC 9113 §5.1)', () => {
  const idle = 'connection stream_idle';
  const half = 'stream stream_half_closed';
  const closed = 'stream stream_closed';
  const never = 'connection stream_closed';
  test.each<[Name, string[]]>([
    ['IDLE', ['OPEN', 'ENDED_BY_REMOTE', idle, idle, idle, idle]],
    ['OPEN', ['OPEN', 'ENDED_BY_REMOTE', 'OPEN', 'ENDED_BY_REMOTE', 'RESET_RECEIVED', 'OPEN']],
    ['ENDED_BY_REMOTE', [half, half, half, half, 'RESET_RECEIVED', 'ENDED_BY_REMOTE']],
    [
      'ENDED_BY_LOCAL',
      ['ENDED_BY_LOCAL', 'ENDED', 'ENDED_BY_LOCAL', 'ENDED', 'RESET_RECEIVED', 'ENDED_BY_LOCAL'],
    ],
    ['ENDED', [never, never, never, never, 'ignored', 'ignored']],
    ['RESET_SENT', ['ignored', 'ignored', 'ignored', 'ignored', 'ignored', 'ignored']],
    ['RESET_RECEIVED', [closed, closed, closed, closed, 'ignored', 'ignored']],
    [
      'FORGOTTEN',
      ['connection stream_id_invalid', 'connection stream_id_invalid', closed, closed, 'ignored', 'ignored'],
    ],
  ])('%s', (name, expected) => {
    const found = FRAMES.map(([frame, endStream]) => {
      const verdict = received(STATES[name], frame, endStream);
      if (verdict.kind === 'next') return nameOf(verdict.state);
      return verdict.kind === 'ignored' ? 'ignored' : `${verdict.kind} ${verdict.reason}`;
    });
    expect(found).toEqual(expected);
  });
});

describe('sent frames by stream state', () => {
  const no = 'forbidden';
  test.each<[Name, string[]]>([
    ['IDLE', ['OPEN', 'ENDED_BY_LOCAL', no, no, no, no]],
    ['OPEN', ['OPEN', 'ENDED_BY_LOCAL', 'OPEN', 'ENDED_BY_LOCAL', 'RESET_SENT', 'OPEN']],
    ['ENDED_BY_LOCAL', [no, no, no, no, 'RESET_SENT', 'ENDED_BY_LOCAL']],
    [
      'ENDED_BY_REMOTE',
      ['ENDED_BY_REMOTE', 'ENDED', 'ENDED_BY_REMOTE', 'ENDED', 'RESET_SENT', 'ENDED_BY_REMOTE'],
    ],
    ['ENDED', [no, no, no, no, no, no]],
    ['RESET_SENT', [no, no, no, no, no, no]],
    ['RESET_RECEIVED', [no, no, no, no, no, no]],
  ])('%s', (name, expected) => {
    expect(FRAMES.map(([frame, endStream]) => nameOf(sent(STATES[name], frame, endStream)))).toEqual(
      expected,
    );
  });
});
