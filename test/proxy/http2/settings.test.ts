import { describe, expect, test } from 'vitest';
import { PeerSettings, type Role } from '../../../src/proxy/http2/settings.ts';
import { hex } from './frames.ts';

function apply(
  payload: string,
  peer: Role = 'client',
): { settings: PeerSettings; fault: string | undefined } {
  const settings = new PeerSettings(peer);
  return { settings, fault: settings.apply(hex(payload)) };
}

test('are what the RFC says until they are said otherwise', () => {
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

test('are taken in order; unknown ones are ignored', () => {
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

test('extended CONNECT may be denied as long as it was not announced', () => {
  expect(apply('0008 00000000').settings.enableConnectProtocol).toBe(false);
  expect(apply('0008 00000000 0008 00000001 0008 00000001')).toMatchObject({
    fault: undefined,
    settings: { enableConnectProtocol: true },
  });
});

describe('faults', () => {
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

  test('a server does not allow pushes', () => {
    expect(apply('0002 00000001', 'server').fault).toBe('settings_push');
    expect(apply('0002 00000000', 'server').fault).toBeUndefined();
  });
});
