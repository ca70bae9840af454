import type { Commands } from './command-line.ts';

/** Each command is its own bundle: the sidecar never loads what only another command needs. */
export const COMMANDS: Commands = {
  proxy: async () => (await import('./proxy.ts')).proxy,
  issuer: async () => (await import('./issuer.ts')).issuer,
  injector: async () => (await import('./injector.ts')).injector,
  broker: async () => (await import('./broker.ts')).broker,
  inject: async () => (await import('./inject.ts')).inject,
  gateway: async () => (await import('./gateway.ts')).gateway,
  check: async () => (await import('./check.ts')).check,
  wait: async () => (await import('./wait.ts')).wait,
  redirect: async () => (await import('./redirect.ts')).redirect,
  explain: async () => (await import('./explain.ts')).explain,
  demo: async () => (await import('./demo.ts')).demo,
};
