/** Each command is a bundle of its own, so that the sidecar loads no other command's code. */
export const COMMANDS = {
  proxy: async () => (await import('../sidecar/program.ts')).proxy,
  issuer: async () => (await import('../issuer/program.ts')).issuer,
  injector: async () => (await import('../injector/program.ts')).injector,
  broker: async () => (await import('../broker/program.ts')).broker,
  inject: async () => (await import('../injector/inject.ts')).inject,
  gateway: async () => (await import('../gateway/program.ts')).gateway,
  check: async () => (await import('../check/program.ts')).check,
  wait: async () => (await import('../sidecar/wait.ts')).wait,
  redirect: async () => (await import('../redirect/program.ts')).redirect,
  explain: async () => (await import('./explain/command.ts')).explain,
  demo: async () => (await import('../demo/program.ts')).demo,
};
