import { describe, expect, test } from 'vitest';
import {
  checkPreface,
  PeerSettings,
  PREFACE,
  PrefaceReader,
  type Role,
} from '../../../src/proxy/http2/settings.ts';
import { hex } from './frames.ts';

function apply(
  payload: string,
  peer: Role = 'client',
): { settings: PeerSettings; fault: string | undefined } {
  const settings = new PeerSettings(peer);
  return { settings, fault: settings.apply(hex(payload)) };
}

test('HTTP/2 settings have the defaults of the RFC', () => {
  expect({ ...new PeerSettings('client') }).toEqual({
    role: 'client',
    headerTableBytes: 4096,
    smallestHeaderTableBytes: 4096,
    maxConcurrentStreams: Number.POSITIVE_INFINITY,
    initialWindowBytes: 65_535,
    maxFrameBytes: 16_384,
    maxFieldSectionBytes: Number.POSITIVE_INFINITY,
    enableConnectProtocol: false,
  });
});

test('HTTP/2 settings are applied in order, and unknown ones are ignored', () => {
  const { settings, fault } = apply(
    '0001 00000000 0001 00000800 0002 00000001 0003 00000000 0004 7fffffff 0005 00ffffff 0006 00000001 0008 00000001 00fa ffffffff',
  );
  expect(fault).toBeUndefined();
  expect({ ...settings }).toEqual({
    role: 'client',
    headerTableBytes: 2048,
    smallestHeaderTableBytes: 0,
    maxConcurrentStreams: 0,
    initialWindowBytes: 0x7fffffff,
    maxFrameBytes: 0xffffff,
    maxFieldSectionBytes: 1,
    enableConnectProtocol: true,
  });
});

test('extended CONNECT may be set to 0 as long as it was not enabled', () => {
  expect(apply('0008 00000000').settings.enableConnectProtocol).toBe(false);
  expect(apply('0008 00000000 0008 00000001 0008 00000001')).toMatchObject({
    fault: undefined,
    settings: { enableConnectProtocol: true },
  });
});

describe('an invalid HTTP/2 setting', () => {
  test.each([
    ['settings_push', '0002 00000002'],
    ['settings_window', '0004 80000000'],
    ['settings_frame_size', '0005 00003fff'],
    ['settings_frame_size', '0005 01000000'],
    ['settings_connect', '0008 00000002'],
    ['settings_connect', '0008 00000001 0008 00000000'],
  ])('%s: %s', (reason, payload) => {
    expect(apply(payload).fault).toBe(reason);
  });

  test('is ENABLE_PUSH from a server', () => {
    expect(apply('0002 00000001', 'server').fault).toBe('settings_push');
    expect(apply('0002 00000000', 'server').fault).toBeUndefined();
  });
});

test('the preface reader recognises another protocol at the first differing octet', () => {
  for (let length = 0; length < PREFACE.length; length++) {
    expect(checkPreface(PREFACE.subarray(0, length))).toBe('partial');
  }
  expect(checkPreface(PREFACE)).toBe('http2');
  expect(checkPreface(Buffer.concat([PREFACE, Buffer.from('more')]))).toBe('http2');
  expect(checkPreface(Buffer.from('P'))).toBe('partial');
  expect(checkPreface(Buffer.from('POST / HTTP/1.1\r\n'))).toBe('other');
  expect(checkPreface(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r!'))).toBe('other');
});

test('the preface is read in any segmentation', () => {
  const octets = Buffer.concat([PREFACE, Buffer.from('next')]);
  for (let cut = 0; cut <= octets.length; cut++) {
    const reader = new PrefaceReader();
    const first = reader.read(octets.subarray(0, cut), 0);
    expect(first).toBe(Math.min(cut, PREFACE.length));
    const second = reader.read(octets.subarray(cut), 0);
    expect(second).toBe(PREFACE.length - first);
    expect(reader.complete).toBe(true);
  }
});

test('the preface is refused at the first wrong octet', () => {
  const reader = new PrefaceReader();
  expect(reader.read(Buffer.from('PRI * '), 0)).toBe(6);
  expect(reader.read(Buffer.from('HTTP/1.1'), 0)).toBe(-1);
  expect(reader.complete).toBe(false);
});
