import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReceiveWindow, SendWindow } from '../../../src/proxy/http2/flow-control.ts';

describe('the send window of HTTP/2', () => {
  test('shrinks and grows, also below zero', () => {
    const window = new SendWindow(10);
    window.take(10);
    expect(window.grow(-5)).toBe(true);
    expect(window.available).toBe(-5);
    expect(window.grow(6)).toBe(true);
    expect(window.available).toBe(1);
  });

  test('never exceeds 2^31-1', () => {
    const window = new SendWindow(1);
    expect(window.grow(0x7ffffffe)).toBe(true);
    expect(window.grow(1)).toBe(false);
  });
});

describe('the receive window of HTTP/2', () => {
  test('is returned in halves once the bytes are consumed', () => {
    const window = new ReceiveWindow(100);
    expect(window.receive(100)).toBe(true);
    expect(window.consume(49)).toBe(0);
    expect(window.consume(1)).toBe(50);
    expect(window.consume(50)).toBe(50);
  });

  test('of a connection is returned sooner while stalled streams hold more than half of it', () => {
    const window = new ReceiveWindow(100_000, { isShared: true });
    const held = 60_000;
    window.receive(held);
    let passed = 0;
    for (let frame = 0; frame < 50; frame += 1) {
      expect(window.receive(8000)).toBe(true);
      window.consume(8000);
      passed += 8000;
    }
    expect(passed).toBe(400_000);
    // Whoever holds it back gives it back in the end.
    window.consume(held);
    expect(window.granted).toBeGreaterThan(50_000);
  });

  test('of a connection is returned even if the latest bytes stall', () => {
    const window = new ReceiveWindow(100_000, { isShared: true });
    window.receive(50_000);
    window.receive(20_000);
    expect([window.consume(20_000), window.due()]).toEqual([0, 0]);
    window.receive(30_000);
    expect([window.due(), window.granted]).toEqual([20_000, 20_000]);
    expect(window.due()).toBe(0);
  });

  test('of a connection never closes while bytes are owed, whatever streams stall', () => {
    const size = 20_000;
    const steps = fc.array(fc.tuple(fc.boolean(), fc.double({ min: 0, max: 1, noNaN: true })), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(steps, (taken) => {
        const window = new ReceiveWindow(size, { isShared: true });
        let held = 0;
        for (const [comes, part] of taken) {
          const bytes = Math.ceil(part * (comes ? window.granted : held));
          held += comes ? bytes : -bytes;
          if (comes) window.receive(bytes);
          // What is done with, or what came, may have the peer told.
          if (comes) window.due();
          else window.consume(bytes);
          expect(window.granted > 0 || held === size).toBe(true);
          expect(window.granted).toBeLessThanOrEqual(size - held);
        }
      }),
    );
  });

  test('of a connection with one octet left still lets bytes pass', () => {
    const window = new ReceiveWindow(100, { isShared: true });
    window.receive(99);
    window.receive(1);
    expect(window.consume(1)).toBe(1);
  });

  test('cannot be exceeded by the peer', () => {
    const window = new ReceiveWindow(100);
    expect(window.receive(60)).toBe(true);
    expect(window.receive(41)).toBe(false);
  });

  test('may be enlarged', () => {
    const window = new ReceiveWindow(100);
    window.receive(10);
    window.consume(10);
    expect(window.enlarge(400)).toBe(410);
    expect(window.size).toBe(500);
    expect(window.receive(500)).toBe(true);
    expect(window.receive(1)).toBe(false);
  });

  test('never runs dry and is never granted twice while bytes are consumed as they come', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.array(fc.nat(1000)), (size, sends) => {
        const window = new ReceiveWindow(size);
        let granted = size;
        for (const wish of sends) {
          const bytes = Math.min(wish, granted);
          expect(window.receive(bytes)).toBe(true);
          granted += window.consume(bytes) - bytes;
          expect(granted).toBeGreaterThan(0);
          expect(granted).toBeLessThanOrEqual(size);
        }
        expect(window.receive(granted + 1)).toBe(false);
      }),
    );
  });
});
