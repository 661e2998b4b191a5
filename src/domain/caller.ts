/** Whom an API key stands for. The user id and the key itself never reach a log. */
export interface Caller {
  /** The key's public id. */
  keyId: string;
  role: 'player' | 'admin';
  /** The user the key acts for; profile operations need one. */
  userId?: string;
  /** The client's label, such as `ios-4.2`. */
  client?: string;
}
