import { script } from '../../../redis/connection/script-loader.ts';

/** An entry of the queue: its id, who has begun to send it or '', and its fields (lua/lib/change.lua). */
export type EntryReply = [id: string, sender: string, fields: string[]];

export const replayBacklog = script<[], [entries: number, setAside: number, oldest: string]>(
  'cutover/replay/backlog',
);

export const replayRead = script<[from: string, count: number], EntryReply[]>('cutover/replay/read');

export const replayMark = script<[id: string, sender: string, known: string], string>('cutover/replay/mark');

export const replayComplete = script<[id: string, acceptedKey: string, pictureUrl: string], number>(
  'cutover/replay/complete',
);

export const replayRefuse = script<[keyId: string], [forMs: number, isOtherAccepted: number]>(
  'cutover/replay/refuse',
);

export const replaySetAside = script<[id: string, status: number, reason: string], number>(
  'cutover/replay/set_aside',
);

export const replayRetry = script<[listing: string, id: string], number>('cutover/replay/retry');

export const replaySendAgain = script<[listing: string, fields: string, sender: string], string>(
  'cutover/replay/send_again',
);

export const replayDiscard = script<[count: number], ('put' | 'ban' | 'remove' | 'overwrite')[]>(
  'cutover/replay/discard',
);

export const replayForgetKeys = script<[], number>('cutover/replay/forget_keys');
