/** The head of the page: the thread's title, the state of the connection, buttons for panels. */

import { chat, isRunning, link } from "../chat";
import {
  agentName,
  agentOf,
  capabilities,
  chooseAgent,
  chooseModel,
  chosenAgent,
  chosenModel,
  customOf,
  modelName,
} from "../server";
import { useStore } from "../store";
import { setTheme, type Theme, theme } from "../theme";
import { threads, titleOf } from "../threads";
import { count } from "./format";
import { IconButton, type IconName } from "./icons";

interface TopBarProps {
  /** True if the list of threads is not beside the conversation. */
  hasMenu: boolean;
  onMenu: () => void;
  onInspector: () => void;
  isInspectorShown: boolean;
}

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

export function TopBar({ hasMenu, onMenu, onInspector, isInspectorShown }: TopBarProps) {
  const selected = useStore(threads.selected);
  const name = useStore(threads.list, (list) => {
    const thread = list.find(({ threadId }) => threadId === selected);
    return thread === undefined ? "New chat" : titleOf(thread);
  });
  const chosen = useStore(theme);
  return (
    <header class="top-bar">
      <div class="top-bar-items">
        {hasMenu && <IconButton icon="menu" label="Threads" onClick={onMenu} />}
        <h1 class="thread-title">{name}</h1>
        <Answerer />
        <Connection />
        <ContextMeter />
        <IconButton
          icon={chosen satisfies IconName}
          label={`Theme: ${chosen}`}
          onClick={() => setTheme(NEXT[chosen])}
        />
        <IconButton icon="panel" label="Inspector" pressed={isInspectorShown} onClick={onInspector} />
      </div>
    </header>
  );
}

/** Which agent and which model answer. They can be chosen where the server offers several. */
function Answerer() {
  const known = useStore(capabilities);
  const isBusy = useStore(chat, isRunning);
  const chosen = useStore(chosenModel);
  const agent = useStore(chosenAgent);
  const { agents = [], agent: usual = "" } = customOf(known);
  const facts = agentOf(known, agent);
  const [name, model] = [agentName(known), modelName(facts)];
  if (name === "" && model === "") return null;
  return (
    <span class="answerer" title={facts.description ?? ""}>
      <Choice
        label="Agent"
        usual={agents.some((each) => each.name === usual) ? usual : name}
        names={agents.map((each) => each.name).filter((each) => each !== usual)}
        chosen={agent === usual ? "" : agent}
        isDisabled={isBusy}
        onChoose={chooseAgent}
      />
      <Choice
        label="Model"
        usual={model}
        names={facts.models ?? []}
        chosen={chosen}
        isDisabled={isBusy}
        onChoose={chooseModel}
      />
    </span>
  );
}

interface ChoiceProps {
  label: string;
  /** What answers without a choice. */
  usual: string;
  names: readonly string[];
  chosen: string;
  isDisabled: boolean;
  onChoose: (name: string) => void;
}

/** A name, or a list of names where there are others. */
function Choice({ label, usual, names, chosen, isDisabled, onChoose }: ChoiceProps) {
  if (names.length === 0) return usual === "" ? null : <span class="answerer-name">{usual}</span>;
  return (
    <select
      aria-label={label}
      value={chosen}
      disabled={isDisabled}
      onChange={(event) => onChoose(event.currentTarget.value)}
    >
      <option value="">{usual}</option>
      {names.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}

const LINKS = { idle: "", connecting: "Connecting", open: "", resuming: "Connecting again" };

function Connection() {
  const state = useStore(link);
  const isReachable = useStore(threads.isReachable);
  const text = LINKS[state] || (isReachable ? "" : "Offline");
  return (
    <span class={`connection connection-${text === "Offline" ? "lost" : state}`} role="status">
      {text}
    </span>
  );
}

/** The used part of the model's context window. */
function ContextMeter() {
  const context = useStore(chat, (state) => state.context);
  if (context === undefined || context.size === 0) return null;
  const share = Math.min(1, context.total / context.size);
  const label = `Context: ${count(context.total)} of ${count(context.size)} tokens`;
  const then = "Without room for more, the oldest messages are summarised or left out.";
  return (
    <span class="context-meter" title={`${label}. ${then}`}>
      <span>Context</span>
      <meter min={0} max={1} high={0.8} optimum={0} value={share} aria-label={label} />
      {Math.round(share * 100)} %
    </span>
  );
}
